//! What is known of a run whose site may not be running: what it last wrote down, and what the ledger says.

use std::time::SystemTime;

use super::ledger_of_data::fingerprint;
use super::status::{EgressStatus, PrivacyStatus, SiteState, SiteStatus};
use super::{SiteError, ledgers_of};
use crate::contract::Contract;
use crate::identity::{Home, SiteName};
use crate::ledger::{LedgerView, SiteLedger};

/// The status of a run at a home, and whether its site runs now. Of a site that does not, the ledger has the last word: a process that
/// was killed has written its status some seconds before.
pub fn status_of(home: &Home, run: &SiteName, now: SystemTime) -> Result<(SiteStatus, bool), SiteError> {
    let folder = home.run_dir(run);
    let contract = Contract::read(&folder.join("plan.toml"))?;
    let written = SiteStatus::read(&folder).filter(|status| status.plan == contract.hash().to_string());
    if let Some(status) = written.as_ref().filter(|status| status.is_alive(now)) {
        return Ok((status.clone(), true));
    }
    let me = contract.site_index(home.name())?;
    let report = contract.calibration().agents[me].noise.as_ref().map(|noise| noise.report());
    let epsilon_plan = report.map_or(f64::MAX, |report| report.epsilon_exact);
    let hash = contract.hash().to_string();
    let mut privacy = PrivacyStatus {
        epsilon_run: 0.0,
        epsilon_plan,
        delta_plan: contract.plan().budget().delta.value(),
        epsilon_spent: 0.0,
        epsilon_cap: 0.0,
        delta_cap: contract.plan().budget().delta.value(),
    };
    if let Ok(cap) = home.config().cap() {
        (privacy.epsilon_cap, privacy.delta_cap) = (cap.epsilon, cap.delta);
    }
    let mut status = written.unwrap_or_else(|| SiteStatus {
        alive_at: 0,
        ended: true,
        at: 0,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        site: home.name().to_string(),
        run: run.to_string(),
        plan: hash.clone(),
        state: SiteState::Waiting,
        place: String::new(),
        round: 0,
        rounds: contract.plan().settings().rounds,
        waiting: None,
        waited: 0,
        neighbours: vec![],
        privacy,
        egress: EgressStatus::default(),
        certificates: vec![],
        disk_free: None,
        log: vec![],
    });
    // What a process that has ended knew of its neighbours is past.
    (status.neighbours, status.waiting, status.ended) = (vec![], None, true);
    let ledgers = ledgers_of(home)?;
    let ledgers = ledgers.iter().map(|path| SiteLedger::read(path)).collect::<Result<Vec<_>, _>>()?;
    let entered = ledgers.iter().find_map(|view| Some((view, view.state().run(&hash)?)));
    status.state = match &entered {
        None => SiteState::Waiting,
        Some((_, run)) if run.is_finished => SiteState::Finished,
        Some(_) => SiteState::Stopped,
    };
    if let Some(view) = entered.map(|(view, _)| view).or_else(|| spent_most(home, &ledgers)) {
        let cap = view.state().cap();
        privacy.epsilon_spent = view.state().epsilon_spent().value();
        (privacy.epsilon_cap, privacy.delta_cap) = (cap.epsilon.value(), cap.delta.value());
    }
    if let Some((view, run)) = entered {
        privacy.epsilon_run = run.spending.epsilon(view.state().cap().delta).value();
        status.round = run.n_released() as u32;
        if status.egress.payloads == 0 {
            (status.egress.payloads, status.egress.bytes) = (u64::from(status.round), run.bytes);
        }
    }
    status.privacy = privacy;
    Ok((status, false))
}

/// Of the ledgers that know the site's records, the one that has spent the most. Records that none knows, or that cannot be read, may be
/// those of any ledger until a person says which, so all of them count.
fn spent_most<'a>(home: &Home, ledgers: &'a [LedgerView]) -> Option<&'a LedgerView> {
    let print = home.config().data().ok().and_then(|file| fingerprint(home.dataset_key(), file).ok());
    let knows = |view: &&LedgerView| print.as_deref().is_some_and(|print| view.state().has_known(print));
    let spent = |view: &&LedgerView| view.state().epsilon_spent().value();
    let by_spending = |a: &&LedgerView, b: &&LedgerView| spent(a).total_cmp(&spent(b));
    ledgers.iter().filter(knows).max_by(by_spending).or_else(|| ledgers.iter().max_by(by_spending))
}
