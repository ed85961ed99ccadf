//! The answer as a person reads it.

use comfy_table::Table;

use padmm_privacy::words::{delta_text, epsilon_text, lower_text, upper_text};
use padmm_privacy::{Promise, Stopping};

use crate::table::{align_right, plain};

use super::{Alternative, Answer, Args, GroupBound};

/// All tables of an answer, with the promise in a sentence at the end.
pub(super) fn text(args: &Args, answer: &Answer) -> String {
    let mut text = format!("{}\n\n{}\n", totals(answer), curve(answer));
    if answer.curve.len() < answer.rho_per_round.len() {
        text += &format!("({} of {} rounds; --all-rounds shows all)\n", answer.curve.len(), answer.rounds);
    }
    if let Some(group) = &answer.group {
        text += &format!("\n{}\n", group_sentence(group, answer));
    }
    if let Some(alternatives) = &answer.compare {
        text += &format!("\n{}\n", compared(alternatives, answer));
    }
    text + &format!("\n{}\n", guarantee(args, answer))
}

fn totals(answer: &Answer) -> Table {
    let mut table = columns(["", "value"]);
    table.add_row(["ε exact".to_owned(), epsilon_text(answer.epsilon_exact)]);
    table.add_row(["ε by the paper's conversion".to_owned(), epsilon_text(answer.epsilon_paper)]);
    table.add_row(["δ".to_owned(), delta_text(answer.delta)]);
    if let Some(bits) = answer.grid_bits {
        let slack = format!("of it for discrete noise (grid of {bits} bits)");
        table.add_row([slack, delta_text(answer.delta_slack)]);
    }
    table.add_row(["ρ in total".to_owned(), upper_text(answer.rho_total)]);
    table.add_row(["μ".to_owned(), upper_text(answer.mu)]);
    table.add_row(["noise σ/Δ, first round".to_owned(), lower_text(answer.noise_multiplier_first)]);
    table.add_row(["noise σ/Δ, last round".to_owned(), lower_text(answer.noise_multiplier_last)]);
    table
}

fn curve(answer: &Answer) -> Table {
    let mut table = columns(["round", "ρ of the round", "ρ so far", "ε exact", "ε paper"]);
    for point in &answer.curve {
        table.add_row([
            point.round.to_string(),
            upper_text(point.rho),
            upper_text(point.rho_spent),
            epsilon_text(point.epsilon_exact),
            epsilon_text(point.epsilon_paper),
        ]);
    }
    table
}

fn group_sentence(group: &GroupBound, answer: &Answer) -> String {
    let plural = |n: u32, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
    format!(
        "Group bound: a patient with {} at each of {} is promised ε = {} (by the paper's conversion {}) at δ = {}.",
        plural(group.records_per_site, "record"),
        plural(group.sites, "site"),
        epsilon_text(group.epsilon_exact),
        epsilon_text(group.epsilon_paper),
        delta_text(answer.delta),
    )
}

fn compared(alternatives: &[Alternative], answer: &Answer) -> Table {
    let mut table = columns([
        "decay R",
        "rounds",
        "ε exact if the noise stays",
        "ε paper",
        "first σ/Δ if ε stays",
        "last σ/Δ",
    ]);
    let maybe = |value: Option<f64>| value.map_or("–".to_owned(), epsilon_text);
    let noise = |value: Option<f64>| value.map_or("–".to_owned(), lower_text);
    for a in alternatives {
        let chosen = if (a.rounds, a.decay) == (answer.rounds, answer.decay) { "→ " } else { "" };
        table.add_row([
            format!("{chosen}{}", a.decay),
            a.rounds.to_string(),
            maybe(a.epsilon_exact_if_noise_stays),
            maybe(a.epsilon_paper_if_noise_stays),
            noise(a.noise_multiplier_first_if_epsilon_stays),
            noise(a.noise_multiplier_last_if_epsilon_stays),
        ]);
    }
    table
}

fn guarantee(args: &Args, answer: &Answer) -> String {
    let kind = match args.features {
        Some(features) => format!("discrete Gaussian noise on a grid, for models of {features} coefficients"),
        None => {
            "ideal Gaussian noise (a release on a computer's grid costs a little more: --features)".to_owned()
        }
    };
    let subject =
        format!("Everything that a site sends in {} rounds, taken together, with {kind},", answer.rounds);
    // An account is made without a plan, so it cannot know more about when a site stops.
    let promise = Promise::new(subject, answer.epsilon_exact, answer.delta, Stopping::SolverMayStall);
    format!(
        "{} Every number is rounded outward: no true ε is above the one that is shown.",
        promise.statement()
    )
}

fn columns<const N: usize>(header: [&str; N]) -> Table {
    let mut table = plain(header);
    align_right(&mut table, usize::from(header[0].is_empty())..N);
    table
}
