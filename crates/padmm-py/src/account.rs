//! From noise to ε and back, without data. What is asked has the names of `padmm account`.

use padmm_core::account::{Noise, Wanted};
use padmm_core::plan::AccountantKind;
use padmm_privacy::{
    Budget, Decay, Delta, Epsilon, GdpMu, ZcdpRho, gdp_delta, gdp_epsilon, gdp_mu, group_mu, group_rho,
    outward, paper_epsilon, paper_rho, rho_to_mu, zcdp_epsilon, zcdp_rho,
};
use pyo3::prelude::*;
use serde_json::{Map, Value, json};

use crate::errors::Failure;
use crate::to_json;

/// Refuses with the command's words.
fn ensure(ok: bool, text: impl FnOnce() -> String) -> Result<(), Failure> {
    if ok { Ok(()) } else { Err(Failure::general(text())) }
}

fn ensure_delta(delta: f64) -> Result<Delta, Failure> {
    if !(delta > 0.0 && delta < 1.0) {
        return Err(Failure::budget(format!(
            "--delta is {delta}, but it must be between 0 and 1, both excluded"
        )));
    }
    Ok(Delta::new(delta)?)
}

fn ensure_budget(epsilon: f64, delta: f64) -> Result<Budget, Failure> {
    if !(epsilon > 0.0 && epsilon <= 1e6) {
        return Err(Failure::budget(format!(
            "--epsilon is {epsilon}, but it must be above 0 and at most 1e6"
        )));
    }
    ensure_delta(delta)?;
    Ok(Budget::new(epsilon, delta)?)
}

fn charge(flag: &str, value: f64) -> Result<ZcdpRho, Failure> {
    ensure(value > 0.0 && value <= 1e100, || {
        format!("--{flag} is {value}, but it must be above 0 and at most 1e100")
    })?;
    Ok(ZcdpRho::new(value)?)
}

/// The noise that one question asks for, and what every round of it costs, as JSON.
#[pyfunction]
#[pyo3(signature = (question, value, delta, rounds, decay, accountant, features, group_records, group_sites))]
#[expect(clippy::too_many_arguments, reason = "the flags of `padmm account`")]
pub(crate) fn account(
    question: &str,
    value: f64,
    delta: f64,
    rounds: u32,
    decay: f64,
    accountant: &str,
    features: Option<usize>,
    group_records: u32,
    group_sites: u32,
) -> PyResult<String> {
    let at = ensure_delta(delta)?;
    ensure(features != Some(0), || "--features is 0, but a model has at least one coefficient".into())?;
    let kind: AccountantKind = accountant.parse().map_err(Failure::from)?;
    let wanted = match question {
        "noise-multiplier" => {
            ensure(value > 0.0 && value.is_finite(), || {
                format!("--noise-multiplier is {value}, but it must be a positive number")
            })?;
            Wanted::Multiplier(value)
        }
        "rho" => Wanted::RhoTotal(charge("rho", value)?),
        "rho-first" => Wanted::RhoFirst(charge("rho-first", value)?),
        _ => Wanted::Budget(ensure_budget(value, delta)?, kind.conversion().map_err(Failure::from)?),
    };
    ensure((1..=1_000_000).contains(&rounds), || {
        format!("--rounds is {rounds}, but it must be at least 1 and at most 1000000")
    })?;
    ensure(decay > 0.0 && decay <= 1.0, || {
        format!("--decay is {decay}, but it must be above 0 and at most 1")
    })?;
    let schedule = Decay::new(rounds, decay)
        .map_err(|e| Failure::from(e).context("--rounds and --decay do not go together"))?;
    let noise = Noise::find(wanted, schedule, at, features).map_err(|e| {
        Failure::from(e).context(&format!("--{question} asks for noise that cannot be accounted for"))
    })?;
    let total = noise.rho_spent(rounds);
    let (exact, paper) = noise.epsilon_spent(rounds);
    let rho = group_rho(total, group_records, group_sites).map_err(Failure::from)?;
    let mu: GdpMu = group_mu(rho_to_mu(total), group_records, group_sites).map_err(Failure::from)?;
    let group = if noise.grid_bits().is_none() { gdp_epsilon(mu, at) } else { zcdp_epsilon(rho, at) };
    let spent: Vec<(f64, f64)> = (1..=rounds).map(|round| noise.epsilon_spent(round)).collect();
    to_json(&json!({
        "epsilon_exact": exact, "epsilon_paper": paper, "delta": delta, "delta_slack": noise.delta_slack(),
        "rho_total": total.value(), "mu": rho_to_mu(total).value(),
        "noise_multiplier_first": noise.multiplier_first(), "noise_multiplier_last": noise.multiplier_last(),
        "rounds": rounds, "decay": decay, "grid_bits": noise.grid_bits(),
        "group_epsilon_exact": group.value(), "group_epsilon_paper": paper_epsilon(rho, at).value(),
        "curve": {
            "round": (1..=rounds).collect::<Vec<u32>>(),
            "rho": (1..=rounds).map(|round| noise.rho(round)).collect::<Vec<f64>>(),
            "rho_spent": (1..=rounds).map(|round| noise.rho_spent(round).value()).collect::<Vec<f64>>(),
            "epsilon_exact": spent.iter().map(|s| s.0).collect::<Vec<f64>>(),
            "epsilon_paper": spent.iter().map(|s| s.1).collect::<Vec<f64>>(),
        },
    }))
}

/// The sum of Gaussian releases with these noise multipliers, in any order, as JSON.
#[pyfunction]
pub(crate) fn compose_gaussian(multipliers: Vec<f64>, delta: f64) -> PyResult<String> {
    let at = ensure_delta(delta)?;
    ensure(!multipliers.is_empty(), || "there is nothing to compose".into())?;
    let mut sum = 0.0;
    for &m in &multipliers {
        ensure(m > 0.0 && m.is_finite(), || {
            format!("--noise-multiplier is {m}, but it must be a positive number")
        })?;
        let ratio = outward::div_up(1.0, m);
        sum = outward::add_up(sum, outward::mul_up(0.5, outward::mul_up(ratio, ratio)));
    }
    let rho = ZcdpRho::new(sum).map_err(Failure::from)?;
    to_json(&json!({
        "epsilon_exact": gdp_epsilon(rho_to_mu(rho), at).value(), "epsilon_paper": paper_epsilon(rho, at).value(),
        "rho_total": rho.value(), "mu": rho_to_mu(rho).value(), "delta": delta,
    }))
}

/// The sum of releases that are purely private, as JSON: ε by every composition theorem.
#[pyfunction]
pub(crate) fn compose_pure(epsilons: Vec<f64>, delta: f64) -> PyResult<String> {
    let at = ensure_delta(delta)?;
    let all = padmm_baselines::accounting::compose_pure(&epsilons, at).map_err(Failure::from)?;
    let mut fields: Map<String, Value> = match serde_json::to_value(all) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    fields.insert("best".into(), json!(padmm_baselines::accounting::CompositionRule::Best.pick(&all)));
    fields.insert("delta".into(), json!(delta));
    to_json(&fields)
}

/// From one privacy measure to another; what is lost goes to the safe side.
#[pyfunction]
#[pyo3(signature = (have, value, want, delta = None, epsilon = None))]
pub(crate) fn convert(
    have: &str,
    value: f64,
    want: &str,
    delta: Option<f64>,
    epsilon: Option<f64>,
) -> PyResult<f64> {
    let at = || -> Result<Delta, Failure> {
        ensure_delta(delta.ok_or_else(|| Failure::general(format!("from {have} to {want} needs `delta`")))?)
    };
    let budget = || -> Result<Budget, Failure> {
        ensure_budget(
            value,
            delta.ok_or_else(|| Failure::general(format!("from {have} to {want} needs `delta`")))?,
        )
    };
    let rho = || -> Result<ZcdpRho, Failure> { Ok(ZcdpRho::new(value)?) };
    let mu = || -> Result<GdpMu, Failure> { Ok(GdpMu::new(value)?) };
    let converted = match (have, want) {
        ("rho", "mu") => rho_to_mu(rho()?).value(),
        ("rho", "epsilon") => zcdp_epsilon(rho()?, at()?).value(),
        ("rho", "paper-epsilon") => paper_epsilon(rho()?, at()?).value(),
        ("gaussian-rho", "epsilon") => gdp_epsilon(rho_to_mu(rho()?), at()?).value(),
        ("mu", "epsilon") => gdp_epsilon(mu()?, at()?).value(),
        ("mu", "delta") => {
            let epsilon = epsilon.ok_or_else(|| Failure::general("from mu to delta needs `epsilon`"))?;
            gdp_delta(mu()?, Epsilon::new(epsilon).map_err(Failure::from)?)
        }
        ("epsilon", "mu") => gdp_mu(budget()?).value(),
        ("epsilon", "rho") => zcdp_rho(budget()?).value(),
        ("paper-epsilon", "rho") => paper_rho(budget()?).value(),
        _ => return Err(Failure::general(format!("there is no conversion from {have} to {want}")).into()),
    };
    Ok(converted)
}

/// An epsilon as people are told it: four decimals, never below it.
#[pyfunction]
pub(crate) fn epsilon_text(epsilon: f64) -> String {
    padmm_privacy::words::epsilon_text(epsilon)
}
