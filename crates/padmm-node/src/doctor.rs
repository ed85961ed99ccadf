//! Whether a site can run, looked at before anything is spent: its home, disk, ledger, plan, network and records.
//!
//! It may be asked at any time, also while the site runs: it takes no lock that a site needs, leaves the site's port alone, and charges and
//! changes nothing. Neighbours are asked before the records are looked at, and whatever is found: nothing that a neighbour
//! could observe depends on a record. Of the records only their number is said, which the plan has anyway.

mod machine;
mod network;

use std::path::Path;
use std::time::SystemTime;

use padmm_core::message::SiteIndex;
use padmm_privacy::words::epsilon_text;
use serde::Serialize;

use crate::contract::PROGRAM;
use crate::identity::{Expiry, Home, IdentityError, SiteName};
use crate::ledger;
use crate::site::{DataChoice, Site, SiteStatus, accepted_runs, ledgers_of, projected_spending};

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What it is, in a word or two.
    pub name: String,
    /// Whether a run can go on with it as it is.
    pub ok: bool,
    /// What was found.
    pub message: String,
    /// What to do about it; empty if there is nothing to do.
    pub advice: String,
}

/// Everything that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnosis {
    /// Whether all of it is as it should be.
    pub ok: bool,
    /// In the order in which it was looked at.
    pub checks: Vec<Check>,
}

#[derive(Default)]
struct Checks(Vec<Check>);

impl Checks {
    fn good(&mut self, name: &str, message: impl Into<String>) {
        let (name, message, advice) = (name.to_owned(), message.into(), String::new());
        self.0.push(Check { name, ok: true, message, advice });
    }

    fn bad(&mut self, name: &str, message: impl Into<String>, advice: impl Into<String>) {
        let (name, message, advice) = (name.to_owned(), message.into(), advice.into());
        self.0.push(Check { name, ok: false, message, advice });
    }

    /// A message of a library says what to do behind its first colon or semicolon.
    fn failed(&mut self, name: &str, error: &dyn std::error::Error) {
        let text = error.to_string();
        match text.split_once(": ").filter(|(_, advice)| advice.contains(' ')) {
            Some((message, advice)) => self.bad(name, message, advice),
            None => self.bad(name, text, "mend that and ask again"),
        }
    }

    fn end(self) -> Diagnosis {
        Diagnosis { ok: self.0.iter().all(|check| check.ok), checks: self.0 }
    }
}

/// Looks at everything; without `run`, at the only plan that is accepted and not finished, or at none.
pub fn examine(dir: &Path, run: Option<&SiteName>, now: SystemTime) -> Diagnosis {
    let mut checks = Checks::default();
    let home = match Home::open(dir) {
        Ok(home) => home,
        Err(error) => {
            home_failed(&mut checks, dir, &error);
            return checks.end();
        }
    };
    let (name, place) = (home.name(), dir.display());
    checks.good("home", format!("{place} is the home of {name}; keys, card and certificate belong together"));
    machine::rights(&mut checks, &home);
    certificate(&mut checks, &home, now);
    machine::disk(&mut checks, &home.ledgers());
    ledgers(&mut checks, &home);
    let Some(run) = which_run(&mut checks, &home, run) else { return checks.end() };
    let site = match Site::read(dir, &run, now) {
        Ok(site) => site,
        Err(error) => {
            checks.failed("plan", &error);
            return checks.end();
        }
    };
    plan(&mut checks, &site, now);
    let running = SiteStatus::read(site.folder()).filter(|status| status.is_alive(now));
    machine::port(&mut checks, &home, running.as_ref());
    match &running {
        Some(status) => network::as_seen_by(&mut checks, status),
        None => network::ask(&mut checks, &site, &home),
    }
    // From here on nothing is sent any more.
    records(&mut checks, &site);
    budget(&mut checks, &site, &home);
    checks.end()
}

fn home_failed(checks: &mut Checks, dir: &Path, error: &IdentityError) {
    let place = dir.display();
    match error {
        IdentityError::Read { path, problem } | IdentityError::Write { path, problem } => {
            let advice = match problem.kind() {
                std::io::ErrorKind::PermissionDenied => {
                    format!(
                        "run the command as the user that {place} belongs to, or give this user the right; do not make a new home"
                    )
                }
                _ => "restore the file from a backup, or mend the disk".to_owned(),
            };
            checks.bad("home", format!("{}: {problem}", path.display()), advice);
        }
        IdentityError::NoHome { .. } => {
            let advice = "check --home, or make a home with `padmm-site site init`";
            checks.bad("home", format!("{place} is not a site's home: it has no site.toml"), advice);
        }
        other => checks.failed("home", other),
    }
}

fn certificate(checks: &mut Checks, home: &Home, now: SystemTime) {
    let certificate = home.card().certificate();
    let renew = "renew it with `padmm-site site rotate`, or `site csr` and `site certify` with an authority, and send the new card to the others";
    match certificate.check_dates(home.name(), now) {
        Ok(Expiry::Fine) => checks.good("certificate", format!("valid until {}", certificate.last_day())),
        Ok(Expiry::Soon { days }) => checks.bad("certificate", format!("it ends in {days} days"), renew),
        Ok(Expiry::Expired { on }) => checks.bad("certificate", format!("it ended on {on}"), renew),
        Err(error @ IdentityError::NotYetValid { .. }) => checks.failed("certificate", &error),
        Err(_) => checks.bad("certificate", format!("it ended on {}", certificate.last_day()), renew),
    }
}

fn ledgers(checks: &mut Checks, home: &Home) {
    let paths = match ledgers_of(home) {
        Ok(paths) => paths,
        Err(error) => return checks.failed("ledger", &error),
    };
    if paths.is_empty() {
        checks.good("ledger", "there is none yet: the first run begins it");
    }
    for path in paths {
        match ledger::verify(&path) {
            Ok(found) => checks.good(
                "ledger",
                format!(
                    "{} is as it was written: {} entries, epsilon spent {}",
                    path.display(),
                    found.entries,
                    epsilon_text(found.epsilon_spent)
                ),
            ),
            Err(error) => checks.bad(
                "ledger",
                error.to_string(),
                "do not run with it. Bring back the newest file; an older one must never continue. Talk to the data-protection officer",
            ),
        }
    }
}

/// The plan to look at: the one that was named, or else the only one that has no model yet.
fn which_run(checks: &mut Checks, home: &Home, run: Option<&SiteName>) -> Option<SiteName> {
    if let Some(run) = run {
        return Some(run.clone());
    }
    let accepted = accepted_runs(home);
    let is_open = |name: &&String| !home.dir().join("runs").join(name).join("model.json").exists();
    let open: Vec<&String> = accepted.iter().filter(is_open).collect();
    match open.as_slice() {
        [] => {
            let advice = "accept one with `padmm-site plan accept`, and ask again";
            checks.bad("plan", "no plan is accepted that has no model yet", advice);
            None
        }
        [one] => SiteName::new(one.as_str()).ok(),
        several => {
            let names: Vec<&str> = several.iter().map(|name| name.as_str()).collect();
            checks.bad(
                "plan",
                format!("several plans are accepted: {}", names.join(", ")),
                "name one with --run",
            );
            None
        }
    }
}

fn plan(checks: &mut Checks, site: &Site, now: SystemTime) {
    let contract = site.contract();
    let hash = contract.hash().to_string();
    checks.good(
        "plan",
        format!(
            "{} is accepted here: hash {}, {} sites, version {}",
            contract.name(),
            &hash[..12],
            contract.sites().len(),
            PROGRAM
        ),
    );
    let signed = site.signed();
    let missing: Vec<&str> = (contract.sites().iter().enumerate())
        .filter(|(i, _)| !signed.contains(&SiteIndex(*i)))
        .map(|(_, entry)| entry.name.as_str())
        .collect();
    // Signatures travel with every greeting, so none has to be here before the run.
    checks.good(
        "signatures",
        match missing.as_slice() {
            [] => "those of all sites are here".to_owned(),
            some => format!(
                "here are {} of {}; those of {} come over the network when the run starts",
                signed.len(),
                contract.sites().len(),
                some.join(", ")
            ),
        },
    );
    for (_, card) in site.neighbour_cards() {
        match card.certificate().expiry(now) {
            Expiry::Fine => {}
            Expiry::Soon { days } => checks.bad(
                "cards",
                format!("the certificate of {} ends in {days} days", card.name()),
                format!("ask {} to renew it and to send its new card", card.name()),
            ),
            Expiry::Expired { on } => checks.bad(
                "cards",
                format!("the certificate of {} ended on {on}", card.name()),
                format!("ask {} to renew it and to send its new card", card.name()),
            ),
        }
    }
}

fn records(checks: &mut Checks, site: &Site) {
    match site.records() {
        Ok(found) => checks.good("records", format!("{} rows, as the plan says", found.n_records())),
        Err(error) => checks.failed("records", &error),
    }
}

fn budget(checks: &mut Checks, site: &Site, home: &Home) {
    match projected_spending(home, site.contract(), &DataChoice::Known) {
        Ok(found) if found.is_within_cap() => checks.good(
            "budget",
            format!(
                "epsilon {} is spent so far; with this plan, and others that are accepted, at most {} of {}",
                epsilon_text(found.spent.value()),
                epsilon_text(found.total.value()),
                found.cap.epsilon
            ),
        ),
        Ok(found) => checks.bad(
            "budget",
            format!("with this plan epsilon would be {}, and the cap is {}", epsilon_text(found.total.value()), found.cap.epsilon),
            "agree to a plan that costs less, or let the data-protection officer raise the cap with `padmm-site ledger cap`",
        ),
        Err(error) => checks.failed("budget", &error),
    }
}
