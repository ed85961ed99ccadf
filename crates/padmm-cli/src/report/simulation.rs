//! The page of one simulation, and what the page of several says about each.

use padmm_commands::page::{Block, CalloutKind, Column, Page, Table};
use padmm_privacy::words::{delta_text, epsilon_text, lower_text, upper_text};
use padmm_privacy::{SensitivityBasis, outward};
use padmm_sim::record::{PrivacyRecord, Record};

use super::command::simulate_command;
use super::{MEASURES, callout, footer, measures, repeat, section};
use crate::plot::{self, capitalized};

pub(crate) fn simulation(record: &Record) -> Page {
    let settings = record.setting.plan.settings();
    Page {
        title: format!("{} on {}", settings.algorithm.title(), record.setting.dataset),
        subtitle: format!(
            "{} sites, {} graph, {} rounds, {} of a simulated network.",
            record.setting.sites.len(),
            record.setting.graph,
            settings.rounds,
            if record.runs.len() == 1 { "one run".to_owned() } else { format!("{} runs", record.runs.len()) },
        ),
        sections: vec![
            section("The guarantee", guarantee(record)),
            section(
                "Convergence and privacy",
                vec![Block::Figure(Box::new(plot::figure(record)), "run".into())],
            ),
            section("Results", results(record)),
            section("What was run", vec![Block::Facts(facts(record)), Block::Table(sites(record))]),
            section("Repeat and cite", repeat(&simulate_command(record))),
        ],
        footer: footer(record),
    }
}

/// What the run promises, or that it promises nothing.
pub(super) fn guarantee(record: &Record) -> Vec<Block> {
    let Some(privacy) = &record.privacy else {
        return vec![callout(
            CalloutKind::Warning,
            "No privacy",
            "The agents exchanged their exact models. Nothing is promised.",
        )];
    };
    let is_proved = privacy.sensitivity_basis == SensitivityBasis::Record;
    let kind =
        if is_proved && privacy.noise_is_exact { CalloutKind::Guarantee } else { CalloutKind::Warning };
    let title = if is_proved {
        format!("ε = {} at δ = {}", epsilon_text(privacy.epsilon_exact), delta_text(privacy.delta))
    } else {
        "No guarantee is stated".to_owned()
    };
    let mut blocks = vec![callout(kind, &title, &privacy.statement)];
    blocks.extend(simulated_noise(record).map(|text| callout(CalloutKind::Note, "Simulated noise", text)));
    blocks.extend(privacy.compositions.map(|_| Block::Table(compositions(privacy))));
    blocks
}

/// What noise from a seed means for the statement; none if the noise was secure.
pub(crate) fn simulated_noise(record: &Record) -> Option<&'static str> {
    let privacy = record.privacy.as_ref()?;
    if !record.noise_source.contains("insecure") {
        return None;
    }
    let between_sites = record.setting.plan.settings().algorithm.runs_between_sites();
    Some(if privacy.noise_is_exact && !between_sites {
        "This was a simulation with noise from a seed: the statement is what the same plan would guarantee with secure noise. This \
         algorithm runs in simulations only."
    } else if privacy.noise_is_exact {
        "This was a simulation with noise from a seed: the statement is what the same plan guarantees between real sites, which draw \
         secure noise."
    } else {
        "This was a simulation with noise from a seed: whoever knows the seed can take the noise off."
    })
}

fn compositions(privacy: &PrivacyRecord) -> Table {
    let all = privacy.compositions.expect("only asked for where there are some");
    let row = |name: &str, epsilon: f64, delta: String| vec![name.to_owned(), epsilon_text(epsilon), delta];
    Table {
        caption: "The same noise under every composition rule".into(),
        columns: vec![Column::text("rule"), Column::number("ε"), Column::number("δ")],
        rows: vec![
            row("basic: the sum of the rounds (as published)", all.basic, "0".into()),
            row("zCDP", all.zcdp, delta_text(privacy.delta)),
            row("Rényi, best order", all.rdp, delta_text(privacy.delta)),
            row("optimal composition", all.exact, delta_text(privacy.delta)),
        ],
        highlight: vec![],
    }
}

fn results(record: &Record) -> Vec<Block> {
    let columns = MEASURES.iter().enumerate().map(|(k, name)| match k {
        0 => Column::text("model"),
        _ => Column::number(*name),
    });
    let table = Table {
        caption: format!(
            "Loss and objective on all training records, with sites weighted by {}, in brackets above the pooled optimum; accuracy, AUC and \
             calibration (intercept, slope) on {}",
            record.setting.plan.settings().weights,
            record.summary.evaluated_on
        ),
        columns: columns.collect(),
        rows: measures(record).into_iter().map(Vec::from).collect(),
        highlight: vec![0],
    };
    let mut blocks = vec![Block::Table(table)];
    blocks.extend(record.worthless().map(|reason| {
        callout(CalloutKind::Warning, "No better than a constant", &format!("{}.", capitalized(&reason)))
    }));
    blocks
}

pub(super) fn facts(record: &Record) -> Vec<(String, String)> {
    let settings = record.setting.plan.settings();
    let mut facts = vec![
        ("Algorithm", settings.algorithm.title().to_owned()),
        (
            "Data",
            format!(
                "{}, {} records of {} features",
                record.setting.dataset, record.setting.records.train, record.setting.features
            ),
        ),
        (
            "Network",
            format!(
                "{} sites, {} graph, split {}",
                record.setting.sites.len(),
                record.setting.graph,
                record.setting.split
            ),
        ),
        ("Problem", format!("{} loss, R(x) = {}", settings.loss, settings.regularizer)),
        ("Rounds and penalty", format!("{} rounds, η = {:.4e}", settings.rounds, record.setting.penalty)),
        ("Runs and seed", format!("{} from seed {}", record.runs.len(), record.setting.seed)),
    ];
    if let Some(p) = &record.privacy {
        let spent = format!(
            "ε {} exact, {} by the method's own paper, δ {}, ρ {}",
            epsilon_text(p.epsilon_exact),
            epsilon_text(p.epsilon_paper),
            delta_text(p.delta),
            upper_text(p.rho_total)
        );
        facts.push(("Privacy", spent));
        facts.push((
            "Noise",
            format!(
                "standard deviation {} first, {} last; sensitivity {}",
                lower_text(p.noise_std_first),
                lower_text(p.noise_std_last),
                upper_text(p.sensitivity)
            ),
        ));
    }
    facts.into_iter().map(|(name, text)| (name.to_owned(), text)).collect()
}

fn sites(record: &Record) -> Table {
    let charge = |name: &str| {
        let own = record.charges.iter().find(|c| c.site == name);
        own.map_or("–".to_owned(), |c| {
            upper_text(c.rho_per_round.iter().copied().fold(0.0, outward::add_up))
        })
    };
    Table {
        caption: "Sites".into(),
        columns: vec![
            Column::text("site"),
            Column::number("records"),
            Column::number("neighbours"),
            Column::number("ρ charged"),
        ],
        rows: record
            .setting
            .sites
            .iter()
            .map(|s| vec![s.name.clone(), s.records.to_string(), s.degree.to_string(), charge(&s.name)])
            .collect(),
        highlight: vec![],
    }
}
