//! What a plan would cost a site, together with everything that its records have cost so far.

use padmm_core::message::SiteIndex;
use padmm_privacy::{Budget, Delta, Epsilon, Spending};

use super::ledger_of_data::{self, DataChoice, Judgement};
use super::{SiteError, acceptances};
use crate::contract::{Contract, ContractError};
use crate::identity::{Home, SiteName};
use crate::ledger::{PlannedRelease, RunStart};

/// ε before and after a plan, at the δ of the cap. Privacy losses do not simply add up, so each number holds for everything up to it.
#[derive(Clone, Debug, PartialEq)]
pub struct ProjectedSpending {
    /// Spent by earlier runs on these records.
    pub spent: Epsilon,
    /// Other plans that this site has accepted, on these records as far as is known, and that have not come to their end.
    pub accepted: Vec<String>,
    /// Spent when those have run to their end.
    pub with_accepted: Epsilon,
    /// Spent when this plan has run to its end too.
    pub total: Epsilon,
    /// What all runs on these records may spend together.
    pub cap: Budget,
}

impl ProjectedSpending {
    /// Whether the plan fits; exactly the cap is allowed.
    pub fn is_within_cap(&self) -> bool {
        self.total.value() <= self.cap.epsilon.value()
    }
}

/// Looks into the ledger of the site's records, which is the one that `site run` would use, and changes nothing.
pub fn projected_spending(
    home: &Home,
    contract: &Contract,
    choice: &DataChoice,
) -> Result<ProjectedSpending, SiteError> {
    let judgement = ledger_of_data::judge(home, choice, &contract.hash().to_string())?;
    let (cap, before) = match judgement.ledger() {
        Some(view) => (view.state().cap(), view.state().spending()),
        None => (judgement.cap, Spending::default()),
    };
    let mut after = before;
    let mut accepted = vec![];
    for other in other_accepted(home, contract)? {
        let rest = uncharged(home, &other, &judgement)?;
        if !rest.is_empty() {
            accepted.push(other.name().to_string());
            add(&mut after, &rest)?;
        }
    }
    let with_accepted = after.epsilon(cap.delta);
    add(&mut after, &uncharged(home, contract, &judgement)?)?;
    let (spent, total) = (before.epsilon(cap.delta), after.epsilon(cap.delta));
    Ok(ProjectedSpending { spent, accepted, with_accepted, total, cap })
}

fn add(spending: &mut Spending, releases: &[PlannedRelease]) -> Result<(), SiteError> {
    for release in releases {
        spending.add(&release.event, release.n_features, release.exponent)?;
    }
    Ok(())
}

/// What a plan would still release of the records of this judgement.
fn uncharged(home: &Home, plan: &Contract, judged: &Judgement) -> Result<Vec<PlannedRelease>, SiteError> {
    let start = run_start(plan, SiteIndex(plan.site_index(home.name())?), home.name(), "")?;
    let is_of_others = judged.others.iter().any(|view| view.state().run(&start.run).is_some());
    let known = judged.ledger().and_then(|view| view.state().run(&start.run));
    // A run with a round that failed cannot continue, and what it was charged is spent.
    let is_over = known.is_some_and(|run| run.is_finished || !run.forfeited().is_empty());
    if is_of_others || is_over {
        return Ok(vec![]);
    }
    let is_charged = |round: u32| known.is_some_and(|run| run.charges.contains_key(&round));
    Ok(start.planned.into_iter().filter(|p| !is_charged(p.round)).collect())
}

/// The other plans that this site has signed. A plan of another version of the program cannot be run by this one and is left out.
fn other_accepted(home: &Home, this: &Contract) -> Result<Vec<Contract>, SiteError> {
    let mut found = vec![];
    for name in acceptances::accepted_runs(home) {
        match Contract::read(&home.dir().join("runs").join(name).join("plan.toml")) {
            Ok(plan) if plan.hash() != this.hash() => found.push(plan),
            Ok(_) | Err(ContractError::Program { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(found)
}

/// A plan as the ledger of site `me` knows it.
pub(super) fn run_start(
    contract: &Contract,
    me: SiteIndex,
    name: &SiteName,
    noise: &str,
) -> Result<RunStart, SiteError> {
    let schedule = contract.calibration().agents[me.0].noise.as_ref().ok_or(SiteError::NoNoise)?;
    let planned = |round| -> Option<PlannedRelease> {
        let (event, exponent) = (schedule.event(round)?, schedule.grid_exponent(round)?);
        Some(PlannedRelease { round, event, n_features: schedule.n_coordinates(round), exponent })
    };
    // Every round of a plan for sites is charged, and is released on a grid.
    let planned = (1..=schedule.rounds()).map(planned).collect::<Option<_>>().ok_or(SiteError::NoNoise)?;
    let report = schedule.report();
    Ok(RunStart {
        run: contract.hash().to_string(),
        plan_name: contract.name().to_string(),
        site: name.to_string(),
        rounds: schedule.rounds(),
        planned,
        epsilon_exact: Epsilon::new(report.epsilon_exact)?,
        delta: Delta::new(report.delta)?,
        noise: noise.to_owned(),
    })
}
