//! The report page of an audit, and its picture.

use std::path::Path;

use padmm_audit::{Trial, normal_distribution, normal_quantile};
use padmm_commands::chart::{Dash, Figure, Panel, Series, Style};
use padmm_commands::page::{Block, CalloutKind, Column, Page, Section, Table};
use padmm_privacy::words::{delta_text, epsilon_text, lower_text};

use super::Finished;

/// Writes `audit.html` and `audit.svg`.
pub(super) fn write(finished: &Finished, folder: &Path) -> anyhow::Result<()> {
    let figure = figure(finished);
    padmm_data::write_atomically(&folder.join("audit.svg"), true, figure.to_svg().as_bytes())?;
    padmm_data::write_atomically(
        &folder.join("audit.html"),
        true,
        page(finished, figure).to_html().as_bytes(),
    )?;
    Ok(())
}

pub(super) fn about(check: &str) -> &'static str {
    match check {
        "whiteness" => "the noise is independent, Gaussian, and of the size that is charged",
        "one_payload" => "one payload and one charge for each round, across restarts",
        "stopping" => "no message makes a site stop or continue depending on one record",
        "refusals" => "neighbouring files are answered alike",
        _ => "",
    }
}

/// How the attacker did, and how sure it was.
fn figure(finished: &Finished) -> Figure {
    let mu = finished.verdict.mu_claimed;
    let caption = format!(
        "{} secret bits, {} guessed wrongly. The attacker knows everything but the bit, and uses the exact likelihood ratio.",
        finished.verdict.bounds.tests, finished.verdict.bounds.wrong
    );
    Figure {
        subtitle: format!("{}.", finished.attacked()),
        caption,
        shared_legend: false,
        ..Figure::new(
            "What an attacker gets out of the releases",
            vec![trade_off(finished, mu), scores(finished, mu)],
        )
    }
}

fn line(label: &str, points: Vec<(f64, f64)>, colour: usize, dash: Dash) -> Series {
    Series::new(label, points, Style { colour, dash })
}

/// Missed +1 against false +1, measured, with the limit that the claim sets.
fn trade_off(finished: &Finished, mu: f64) -> Panel {
    let mut sorted: Vec<Trial> = finished.trials.clone();
    sorted.sort_by(|a, b| b.score.total_cmp(&a.score));
    let n_plus = sorted.iter().filter(|t| t.secret > 0.0).count().max(1) as f64;
    let n_minus = (sorted.len() as f64 - n_plus).max(1.0);
    let (mut found, mut false_alarms) = (0.0, 0.0);
    let mut measured = vec![(0.0, 1.0)];
    let every = sorted.len().div_ceil(200);
    for (i, trial) in sorted.iter().enumerate() {
        if trial.secret > 0.0 {
            found += 1.0
        } else {
            false_alarms += 1.0
        }
        if i.is_multiple_of(every) || i + 1 == sorted.len() {
            measured.push((false_alarms / n_minus, 1.0 - found / n_plus));
        }
    }
    let at = |i: u32| f64::from(i) / 100.0;
    let limit = |i: u32| (at(i), normal_distribution(-normal_quantile(at(i)) - mu));
    Panel {
        title: "Errors that the attacker makes".to_owned(),
        x_label: "+1 guessed, −1 is true".to_owned(),
        y_label: "−1 guessed, +1 is true".to_owned(),
        series: vec![
            line("blind guessing", vec![(0.0, 1.0), (1.0, 0.0)], 6, Dash::Dotted),
            line("limit of the claim", (0..=100).map(limit).collect(), 1, Dash::Dashed),
            line("measured", measured, 0, Dash::Solid),
        ],
        y_range: Some((0.0, 1.0)),
        note: "A curve well below the limit would break the guarantee.".to_owned(),
        ..Panel::default()
    }
}

/// The log-likelihood ratios of the two labels, in standard deviations.
fn scores(finished: &Finished, mu: f64) -> Panel {
    const WIDTH: f64 = 0.25;
    let bins: Vec<f64> = (-18..18).map(|b| f64::from(b) * WIDTH).collect();
    let of = |sign: f64| {
        let own: Vec<f64> =
            finished.trials.iter().filter(|t| t.secret * sign > 0.0).map(|t| t.score).collect();
        let share = |&low: &f64| {
            let n = own.iter().filter(|s| (low..low + WIDTH).contains(*s)).count();
            (low + 0.5 * WIDTH, n as f64 / (own.len().max(1) as f64 * WIDTH))
        };
        bins.iter().map(share).collect::<Vec<_>>()
    };
    let claimed = |center: f64| {
        let density = |&low: &f64| {
            let (x, peak) = (low + 0.5 * WIDTH, 1.0 / std::f64::consts::TAU.sqrt());
            (x, peak * (-0.5 * (x - center) * (x - center)).exp())
        };
        bins.iter().map(density).collect::<Vec<_>>()
    };
    Panel {
        title: "What the attacker thinks of a bit".to_owned(),
        x_label: "log-likelihood ratio, in standard deviations".to_owned(),
        y_label: "density".to_owned(),
        series: vec![
            line("−1, as claimed", claimed(-0.5 * mu), 1, Dash::Dashed),
            line("+1, as claimed", claimed(0.5 * mu), 0, Dash::Dashed),
            line("−1, measured", of(-1.0), 1, Dash::Solid),
            line("+1, measured", of(1.0), 0, Dash::Solid),
        ],
        note: format!("The claim lets the two be {mu:.3} standard deviations apart."),
        ..Panel::default()
    }
}

fn page(finished: &Finished, figure: Figure) -> Page {
    let verdict = &finished.verdict;
    let section = |title: &str, blocks: Vec<Block>| Section { title: title.to_owned(), blocks };
    let findings = verdict.findings();
    let callout = if findings.is_empty() {
        Block::Callout {
            kind: CalloutKind::Guarantee,
            title: format!("Nothing was found that breaks ε = {}", verdict.claimed_epsilon),
            text: finished.bound(),
        }
    } else {
        Block::Callout {
            kind: CalloutKind::Warning,
            title: "The guarantee is broken".to_owned(),
            text: finished.bound(),
        }
    };
    let mut first = vec![callout];
    if !findings.is_empty() {
        first.push(Block::List(findings));
    }
    first.push(Block::Facts(facts(finished)));
    let rows = verdict.checks.all().map(|(name, check)| {
        let outcome = if check.is_passed() { "passed" } else { "failed" };
        vec![name.replace('_', " "), about(name).to_owned(), outcome.to_owned()]
    });
    let table = Table {
        caption: "What a likelihood ratio cannot see".to_owned(),
        columns: vec![Column::text("check"), Column::text("what must hold"), Column::text("outcome")],
        rows: rows.to_vec(),
        highlight: vec![],
    };
    Page {
        title: if verdict.is_passed() { "Audit: passed" } else { "Audit: failed" }.to_owned(),
        subtitle: format!("{}.", finished.attacked()),
        sections: vec![
            section("Verdict", first),
            section("The attack", vec![Block::Figure(Box::new(figure), "audit".to_owned())]),
            section("Further checks", vec![Block::Table(table)]),
            section("What this shows", vec![Block::List(limits())]),
            section("Repeat", vec![Block::Command(command(finished))]),
        ],
        footer: format!(
            "padmm {}. The noise has no seed: another audit has other numbers.",
            env!("CARGO_PKG_VERSION")
        ),
    }
}

fn facts(finished: &Finished) -> Vec<(String, String)> {
    let (verdict, bounds) = (&finished.verdict, &finished.verdict.bounds);
    let percent = 100.0 * bounds.confidence;
    [
        (
            "Claimed",
            format!("ε = {} at δ = {}", epsilon_text(verdict.claimed_epsilon), delta_text(verdict.delta)),
        ),
        ("Proved", format!("ε ≥ {} with {percent} % confidence", lower_text(bounds.epsilon_lower))),
        ("Proved without any assumption", format!("ε ≥ {}", lower_text(bounds.epsilon_direct))),
        ("μ measured / claimed", format!("{:.4} / {:.4}", bounds.mu_measured, verdict.mu_claimed)),
        ("Wrong guesses", format!("{} of {}", bounds.wrong, bounds.tests)),
        (
            "Fewest that the claim allows",
            format!("{:.0} on average", verdict.least_error() * bounds.tests as f64),
        ),
        ("Time", format!("{:.1} s", finished.seconds)),
        ("Seed of bits and messages", finished.request.seed.to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

fn limits() -> Vec<String> {
    [
        "A bound above the claim, or a check that fails, proves that the guarantee does not hold.",
        "An audit that passes shows that this attacker, who is as strong as the claim allows, got no further; it is evidence and no proof.",
        "The bound comes close to the claim because the records are made for it. On ordinary records an attacker gets far less.",
        "It cannot see a weak source of random bits, side channels such as time, or what a site does outside this program.",
    ]
    .map(str::to_owned)
    .to_vec()
}

fn command(finished: &Finished) -> String {
    let request = &finished.request;
    format!(
        "padmm audit --algorithm {} --epsilon {} --delta {} --tests {} --confidence {} --rounds {} --seed {}{} --out DIR",
        request.algorithm.name(),
        request.epsilon,
        request.delta,
        request.tests,
        request.confidence,
        request.rounds,
        request.seed,
        if finished.on_sites { " --sites" } else { "" }
    )
}
