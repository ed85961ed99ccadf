//! `padmm account`: from noise to ε and from ε to noise, without data.

mod render;

use anyhow::{Context, ensure};
use padmm_core::account::{Noise, Wanted};
use padmm_core::plan::AccountantKind;
use padmm_privacy::{
    Budget, Decay, Delta, GdpMu, ZcdpRho, gdp_epsilon, group_mu, group_rho, paper_epsilon, rho_to_mu,
    zcdp_epsilon,
};
use serde::Serialize;

use crate::terminal::{print, print_json};

/// Rows of the curve that are shown without `--all-rounds`.
const ROWS: u32 = 12;
/// Decays that `--compare` looks at, beside the chosen one.
const DECAYS: [f64; 4] = [1.0, 0.995, 0.99, 0.95];

/// Heading of the flags that ask: one of them, or none.
const ASK: &str = "Question";

/// Flags of `account`, the same in both programs.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    /// Total privacy loss ε of a site; the noise for it is computed [default: 5]
    #[arg(long, value_name = "E", help_heading = ASK, group = "question", allow_negative_numbers = true)]
    epsilon: Option<f64>,
    /// Noise of the first round, σ/Δ: standard deviation over sensitivity; its ε is computed
    #[arg(long, value_name = "M", help_heading = ASK, group = "question", allow_negative_numbers = true)]
    noise_multiplier: Option<f64>,
    /// zCDP charge ρ of all rounds together; its ε is computed
    #[arg(long, value_name = "RHO", help_heading = ASK, group = "question", allow_negative_numbers = true)]
    rho: Option<f64>,
    /// zCDP charge ρ of the first round; its ε is computed
    #[arg(long, value_name = "RHO", help_heading = ASK, group = "question", allow_negative_numbers = true)]
    rho_first: Option<f64>,

    /// δ of the guarantee, above 0 and below 1
    #[arg(long, value_name = "D", default_value_t = 1e-4, allow_negative_numbers = true)]
    delta: f64,
    /// Private rounds K that share the budget
    #[arg(long, value_name = "K", default_value_t = 50, allow_negative_numbers = true)]
    rounds: u32,
    /// Factor R of the noise variance from round to round
    #[arg(long, value_name = "R", default_value_t = 0.995, allow_negative_numbers = true)]
    decay: f64,
    /// Conversion that calibrates the noise for ε: exact or paper
    #[arg(long, value_name = "WHICH", default_value_t)]
    accountant: AccountantKind,
    /// Length of the model: accounts for releases on a grid, as sites make them, in place of ideal Gaussian noise
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    features: Option<usize>,
    /// Records that one patient has at a site, for the group bound
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    group_records: Option<u32>,
    /// Sites that hold records of one patient, for the group bound
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    group_sites: Option<u32>,
    /// Show what happens if rounds or decay change
    #[arg(long)]
    compare: bool,
    /// Show every round of the curve
    #[arg(long)]
    all_rounds: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Everything that is answered; this is the `--json` object.
#[derive(Serialize)]
struct Answer {
    epsilon_exact: f64,
    epsilon_paper: f64,
    delta: f64,
    delta_slack: f64,
    rho_total: f64,
    mu: f64,
    noise_multiplier_first: f64,
    noise_multiplier_last: f64,
    rounds: u32,
    decay: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    grid_bits: Option<u32>,
    rho_per_round: Vec<f64>,
    curve: Vec<Point>,
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<GroupBound>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compare: Option<Vec<Alternative>>,
}

/// The dynamic zCDP curve after one round.
#[derive(Serialize)]
struct Point {
    round: u32,
    rho: f64,
    rho_spent: f64,
    epsilon_exact: f64,
    epsilon_paper: f64,
}

/// What a patient with several records is promised.
#[derive(Serialize)]
struct GroupBound {
    records_per_site: u32,
    sites: u32,
    epsilon_exact: f64,
    epsilon_paper: f64,
    rho_total: f64,
    mu: f64,
}

/// Other rounds and another decay: ε if the first round's noise stays, and the noise if ε stays. `None` where the decay is
/// too steep for that many rounds, or the numbers leave the range in which anything is proved.
#[derive(Serialize)]
struct Alternative {
    rounds: u32,
    decay: f64,
    epsilon_exact_if_noise_stays: Option<f64>,
    epsilon_paper_if_noise_stays: Option<f64>,
    noise_multiplier_first_if_epsilon_stays: Option<f64>,
    noise_multiplier_last_if_epsilon_stays: Option<f64>,
}

/// Answers the question that the flags ask, in tables or as JSON.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let answer = answer(args)?;
    if args.json { print_json(&answer) } else { print(&render::text(args, &answer)) }
}

fn answer(args: &Args) -> anyhow::Result<Answer> {
    let (wanted, delta) = question(args)?;
    let decay = decay(args)?;
    let noise = Noise::find(wanted, decay, delta, args.features)
        .with_context(|| format!("{} asks for noise that cannot be accounted for", flag(args)))?;
    let total = noise.rho_spent(args.rounds);
    let (exact, paper) = noise.epsilon_spent(args.rounds);
    let point = |round| {
        let (epsilon_exact, epsilon_paper) = noise.epsilon_spent(round);
        let (rho, rho_spent) = (noise.rho(round), noise.rho_spent(round).value());
        Point { round, rho, rho_spent, epsilon_exact, epsilon_paper }
    };
    let shown = if args.all_rounds { args.rounds } else { ROWS };
    Ok(Answer {
        epsilon_exact: exact,
        epsilon_paper: paper,
        delta: args.delta,
        delta_slack: noise.delta_slack(),
        rho_total: total.value(),
        mu: rho_to_mu(total).value(),
        noise_multiplier_first: noise.multiplier_first(),
        noise_multiplier_last: noise.multiplier_last(),
        rounds: args.rounds,
        decay: args.decay,
        grid_bits: noise.grid_bits(),
        rho_per_round: (1..=args.rounds).map(|round| noise.rho(round)).collect(),
        curve: spread(args.rounds, shown).into_iter().map(point).collect(),
        group: group(args, &noise, total, delta)?,
        compare: args.compare.then(|| compare(args, &noise, exact, paper, delta)),
    })
}

/// What is asked, checked flag by flag.
fn question(args: &Args) -> anyhow::Result<(Wanted, Delta)> {
    ensure!(
        args.delta > 0.0 && args.delta < 1.0,
        "--delta is {}, but it must be between 0 and 1, both excluded",
        args.delta
    );
    let delta = Delta::new(args.delta)?;
    if let Some(features) = args.features {
        ensure!(features >= 1, "--features is 0, but a model has at least one coefficient");
    }
    let positive = |flag: &str, value: f64| {
        ensure!(value > 0.0 && value.is_finite(), "--{flag} is {value}, but it must be a positive number");
        Ok(value)
    };
    let charge = |flag: &str, value: f64| {
        ensure!(
            value > 0.0 && value <= 1e100,
            "--{flag} is {value}, but it must be above 0 and at most 1e100"
        );
        Ok(ZcdpRho::new(value)?)
    };
    let wanted = match (args.noise_multiplier, args.rho, args.rho_first) {
        (Some(multiplier), ..) => Wanted::Multiplier(positive("noise-multiplier", multiplier)?),
        (_, Some(rho), _) => Wanted::RhoTotal(charge("rho", rho)?),
        (_, _, Some(rho)) => Wanted::RhoFirst(charge("rho-first", rho)?),
        _ => {
            let epsilon = args.epsilon.unwrap_or(5.0);
            ensure!(
                epsilon > 0.0 && epsilon <= 1e6,
                "--epsilon is {epsilon}, but it must be above 0 and at most 1e6"
            );
            Wanted::Budget(Budget::new(epsilon, args.delta)?, args.accountant.conversion()?)
        }
    };
    Ok((wanted, delta))
}

/// The flag that asks the question.
fn flag(args: &Args) -> &'static str {
    match (args.noise_multiplier, args.rho, args.rho_first) {
        (Some(_), ..) => "--noise-multiplier",
        (_, Some(_), _) => "--rho",
        (_, _, Some(_)) => "--rho-first",
        _ => "--epsilon",
    }
}

fn decay(args: &Args) -> anyhow::Result<Decay> {
    ensure!(
        (1..=1_000_000).contains(&args.rounds),
        "--rounds is {}, but it must be at least 1 and at most 1000000",
        args.rounds
    );
    ensure!(
        args.decay > 0.0 && args.decay <= 1.0,
        "--decay is {}, but it must be above 0 and at most 1",
        args.decay
    );
    Decay::new(args.rounds, args.decay).context("--rounds and --decay do not go together")
}

/// The group bound, if a flag asks for one.
///
/// Ideal Gaussian noise is converted exactly. Noise on a grid is converted from zCDP at the optimal order, which holds for
/// discrete noise as it is, for groups too, so that no slack has to be argued.
fn group(args: &Args, noise: &Noise, total: ZcdpRho, delta: Delta) -> anyhow::Result<Option<GroupBound>> {
    if args.group_records.is_none() && args.group_sites.is_none() {
        return Ok(None);
    }
    let (records, sites) = (args.group_records.unwrap_or(1), args.group_sites.unwrap_or(1));
    ensure!(records >= 1, "--group-records is 0, but a patient of a group has at least one record");
    ensure!(sites >= 1, "--group-sites is 0, but a patient of a group is at one site at least");
    let too_large = "--group-records and --group-sites make the group too large to say anything";
    let rho = group_rho(total, records, sites).context(too_large)?;
    let mu: GdpMu = group_mu(rho_to_mu(total), records, sites).context(too_large)?;
    let exact = if noise.grid_bits().is_none() { gdp_epsilon(mu, delta) } else { zcdp_epsilon(rho, delta) };
    Ok(Some(GroupBound {
        records_per_site: records,
        sites,
        epsilon_exact: exact.value(),
        epsilon_paper: paper_epsilon(rho, delta).value(),
        rho_total: rho.value(),
        mu: mu.value(),
    }))
}

/// Half, the same and twice the rounds, with a few decays.
fn compare(args: &Args, noise: &Noise, exact: f64, paper: f64, delta: Delta) -> Vec<Alternative> {
    let mut rounds =
        vec![(args.rounds / 2).max(1), args.rounds, args.rounds.saturating_mul(2).min(1_000_000)];
    rounds.dedup();
    let mut decays = DECAYS.to_vec();
    decays.push(args.decay);
    decays.sort_by(|a, b| b.total_cmp(a));
    decays.dedup();
    // The ε that stays: the budget if one was given, else what the given noise is worth by the chosen conversion.
    let spent = match args.accountant {
        // Basic composition was refused before; Gaussian noise has none.
        AccountantKind::Exact | AccountantKind::Basic => exact,
        AccountantKind::Paper => paper,
    };
    let budgeted = (flag(args) == "--epsilon").then(|| args.epsilon.unwrap_or(5.0));
    let budget = Budget::new(budgeted.unwrap_or(spent), args.delta);
    let alternative = |rounds: u32, decay: f64| {
        let find = |wanted| Noise::find(wanted, Decay::new(rounds, decay).ok()?, delta, args.features).ok();
        let same_noise = find(Wanted::Multiplier(noise.multiplier_first())).map(|n| n.epsilon_spent(rounds));
        let same_epsilon = budget
            .as_ref()
            .ok()
            .and_then(|budget| find(Wanted::Budget(*budget, args.accountant.conversion().ok()?)));
        Alternative {
            rounds,
            decay,
            epsilon_exact_if_noise_stays: same_noise.map(|e| e.0),
            epsilon_paper_if_noise_stays: same_noise.map(|e| e.1),
            noise_multiplier_first_if_epsilon_stays: same_epsilon.as_ref().map(Noise::multiplier_first),
            noise_multiplier_last_if_epsilon_stays: same_epsilon.as_ref().map(Noise::multiplier_last),
        }
    };
    decays
        .iter()
        .flat_map(|&decay| rounds.iter().map(move |&k| (k, decay)))
        .map(|(k, r)| alternative(k, r))
        .collect()
}

/// At most `rows` of the rounds 1 to `rounds`, evenly spaced, the first and the last among them.
fn spread(rounds: u32, rows: u32) -> Vec<u32> {
    if rounds <= rows {
        return (1..=rounds).collect();
    }
    let (last, steps) = (u64::from(rounds - 1), u64::from(rows - 1));
    (0..=steps).map(|i| 1 + (i * last / steps) as u32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_spread_from_the_first_to_the_last() {
        assert_eq!(spread(3, 12), [1, 2, 3]);
        let rows = spread(1_000_000, 12);
        assert_eq!((rows.len(), rows[0], rows[11]), (12, 1, 1_000_000));
        assert!(rows.windows(2).all(|w| w[0] < w[1]));
    }
}
