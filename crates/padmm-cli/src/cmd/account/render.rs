//! The answer as a person reads it.

use comfy_table::{CellAlignment, Table, presets};

use super::{Alternative, Answer, Args, GroupBound};

/// Tables and sentences.
pub fn text(args: &Args, answer: &Answer) -> String {
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
    table.add_row(["ε exact".to_owned(), up(answer.epsilon_exact)]);
    table.add_row(["ε by the paper's conversion".to_owned(), up(answer.epsilon_paper)]);
    table.add_row(["δ".to_owned(), format!("{:e}", answer.delta)]);
    if let Some(bits) = answer.grid_bits {
        let slack = format!("of it for discrete noise (grid of {bits} bits)");
        table.add_row([slack, up(answer.delta_slack)]);
    }
    table.add_row(["ρ in total".to_owned(), up(answer.rho_total)]);
    table.add_row(["μ".to_owned(), up(answer.mu)]);
    table.add_row(["noise σ/Δ, first round".to_owned(), up(answer.noise_multiplier_first)]);
    table.add_row(["noise σ/Δ, last round".to_owned(), up(answer.noise_multiplier_last)]);
    table
}

fn curve(answer: &Answer) -> Table {
    let mut table = columns(["round", "ρ of the round", "ρ so far", "ε exact", "ε paper"]);
    for point in &answer.curve {
        table.add_row([
            point.round.to_string(),
            up(point.rho),
            up(point.rho_spent),
            up(point.epsilon_exact),
            up(point.epsilon_paper),
        ]);
    }
    table
}

fn group_sentence(group: &GroupBound, answer: &Answer) -> String {
    let plural = |n: u32, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
    format!(
        "Group bound: a patient with {} at each of {} is promised ε = {} (by the paper's conversion {}) at δ = {:e}.",
        plural(group.records_per_site, "record"),
        plural(group.sites, "site"),
        up(group.epsilon_exact),
        up(group.epsilon_paper),
        answer.delta,
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
    let maybe = |value: Option<f64>| value.map_or("–".to_owned(), up);
    for a in alternatives {
        let chosen = if (a.rounds, a.decay) == (answer.rounds, answer.decay) { "→ " } else { "" };
        table.add_row([
            format!("{chosen}{}", a.decay),
            a.rounds.to_string(),
            maybe(a.epsilon_exact_if_noise_stays),
            maybe(a.epsilon_paper_if_noise_stays),
            maybe(a.noise_multiplier_first_if_epsilon_stays),
            maybe(a.noise_multiplier_last_if_epsilon_stays),
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
    format!(
        "All that a site sends in {} rounds, taken together, satisfies ({}, {:e})-differential privacy for the change \
         \"replace one record of one site\", with {kind}. Every number is rounded outward: no true ε is above the one \
         that is shown.",
        answer.rounds,
        up(answer.epsilon_exact),
        answer.delta,
    )
}

fn columns<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    let first = usize::from(header[0].is_empty());
    for column in table.column_iter_mut().skip(first) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// A positive number to four decimals, or four digits where it is small or large, never below the number itself.
pub fn up(value: f64) -> String {
    let plain = (0.1..1e7).contains(&value) || value == 0.0;
    let write = |v: f64| if plain { format!("{v:.4}") } else { format!("{v:.3e}") };
    let text = write(value);
    if text.parse::<f64>().is_ok_and(|shown| shown >= value) {
        return text;
    }
    let unit = if plain { 1e-4 } else { 10f64.powf(value.log10().floor() - 3.0) };
    write(value + unit)
}

#[cfg(test)]
mod tests {
    use super::up;

    #[test]
    fn shown_numbers_are_never_below() {
        for value in
            [0.0, 1e-12, 0.099_999, 0.1, 0.693_701, 3.982_300_001, 5.0, 123_456.789_01, 9.999e7, 9.9999e7]
        {
            let shown: f64 = up(value).parse().unwrap();
            assert!(
                shown >= value && shown <= value * 1.002 + 1e-4 * f64::from(u8::from(value >= 0.1)),
                "{value}"
            );
        }
        assert_eq!((up(5.0), up(0.693_701), up(1e-4)), ("5.0000".into(), "0.6938".into(), "1.000e-4".into()));
    }
}
