//! What a plan would cost a site, together with everything that its records have cost so far.

use padmm_privacy::{Budget, Delta, Epsilon, Spending};

use super::{SiteError, ledger_of_data};
use crate::contract::Contract;
use crate::identity::{Home, SiteName};
use crate::ledger::{PlannedRelease, RunStart};

/// ε before and after a plan, at the δ of the cap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Foreseen {
    /// Spent by earlier runs on these records.
    pub spent: Epsilon,
    /// Spent when this plan has run to its end too.
    pub total: Epsilon,
    /// What may be spent.
    pub cap: Budget,
}

impl Foreseen {
    /// Whether the plan fits; exactly the cap is allowed.
    pub fn is_within_cap(&self) -> bool {
        self.total.value() <= self.cap.epsilon.value()
    }
}

/// Looks into the ledger of the site's records, if there is one yet, and changes nothing.
pub fn foresee(home: &Home, contract: &Contract) -> Result<Foreseen, SiteError> {
    let start = run_start(contract, contract.site_index(home.name())?, home.name(), "")?;
    let view = ledger_of_data::find(home)?;
    let (cap, before) = match &view {
        Some(view) => (view.state().cap(), view.state().spending()),
        None => (home.config().cap()?.budget()?, Spending::new()),
    };
    let known = view.as_ref().and_then(|v| v.state().run(&start.run));
    let is_charged = |round: u32| known.is_some_and(|run| run.charges.contains_key(&round));
    let mut after = before;
    for release in start.planned.iter().filter(|p| !is_charged(p.round)) {
        after.add(&release.event, release.n_features, release.exponent)?;
    }
    Ok(Foreseen { spent: before.epsilon(cap.delta), total: after.epsilon(cap.delta), cap })
}

/// A plan as the ledger of site `me` knows it.
pub(super) fn run_start(
    contract: &Contract,
    me: usize,
    name: &SiteName,
    noise: &str,
) -> Result<RunStart, SiteError> {
    let schedule = contract.terms().agents[me].noise.as_ref().ok_or(SiteError::NoNoise)?;
    let gaussian = schedule.as_gaussian().ok_or(SiteError::NoNoise)?;
    let planned = |round| PlannedRelease {
        round,
        event: gaussian.event(round),
        n_features: gaussian.n_features(),
        exponent: gaussian.grid_exponent(round),
    };
    let report = schedule.report();
    Ok(RunStart {
        run: contract.hash().to_string(),
        plan_name: contract.name().to_string(),
        site: name.to_string(),
        rounds: gaussian.rounds(),
        planned: (1..=gaussian.rounds()).map(planned).collect(),
        epsilon_exact: Epsilon::new(report.epsilon_exact)?,
        delta: Delta::new(report.delta)?,
        noise: noise.to_owned(),
    })
}
