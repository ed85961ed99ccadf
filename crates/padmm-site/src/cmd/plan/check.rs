//! What a plan means for each site, before anything is spent.

use std::path::Path;
use std::time::SystemTime;

use comfy_table::Table;
use padmm_commands::table::{align_right, plain};
use padmm_core::algorithm::Audience;
use padmm_core::solvable::MOST_RATIO;
use padmm_node::contract::{Contract, Silence};
use padmm_node::identity::{SiteName, cards_in};
use padmm_privacy::words::{delta_text, epsilon_text, lower_text, upper_text};
use padmm_privacy::{PrivacyReport, SpentEpsilon, Stopping};
use serde::Serialize;

use super::super::site::expiry_warning;
use super::outlook::{self, Outlook};
use padmm_commands::terminal::{print, print_json};

/// Bytes of an envelope beside its coefficients: plan, sender, round, signature.
const ENVELOPE: u64 = 180;
/// Bytes of a ledger's entry beside its coefficients, indices included; a generous guess.
const ENTRY: u64 = 400;
/// A site with fewer records is told that its noise is large.
const FEW_RECORDS: usize = 100;

/// What a plan means for one site.
#[derive(Serialize)]
pub(super) struct SiteCost {
    pub site: String,
    pub neighbours: Vec<String>,
    pub records: usize,
    pub sensitivity: f64,
    pub noise_std_first: f64,
    pub noise_std_last: f64,
    pub epsilon_exact: f64,
    pub epsilon_paper: f64,
    pub delta: f64,
    pub delta_slack: f64,
    pub epsilon_curve: Vec<SpentEpsilon>,
    /// Whether its releases are passed on to sites that are no neighbours.
    pub passed_on: bool,
    /// Numbers in the longest of its messages.
    pub longest_message: usize,
    /// The part of the solver's tolerance that rounding may take; public, and above a quarter the plan is refused. None where nothing is
    /// solved.
    pub public_ratio: Option<f64>,
    /// A neighbour's model that is longer is not used; none where nothing is solved.
    pub message_limit: Option<f64>,
    /// What decides whether the site stops.
    pub stopping: Stopping,
    pub messages_at_most: u64,
    pub bytes_at_most: u64,
    pub ledger_bytes_about: u64,
}

#[derive(Serialize)]
struct Answer {
    name: String,
    hash: String,
    rounds: u32,
    averaging_turns: u32,
    coefficients: usize,
    /// Of the methods that have one.
    penalty: Option<f64>,
    sites: Vec<SiteCost>,
    warnings: Vec<String>,
    /// What the plan may be expected to come to; none where that is not known.
    outlook: Option<Outlook>,
}

/// What the plan means for the site at `index`.
pub(super) fn cost(contract: &Contract, index: usize) -> SiteCost {
    let (site, agent) = (&contract.sites()[index], &contract.calibration().agents[index]);
    let schedule = agent.noise.as_ref().expect("a contract's algorithm is private");
    let report = schedule.report();
    let settings = contract.plan().settings();
    let rounds = u64::from(settings.rounds);
    let degree = agent.degree as u64;
    let longest = (1..=schedule.rounds()).map(|round| schedule.n_coordinates(round)).max();
    let longest_message = longest.unwrap_or_default().max(contract.space().n_features());
    let coefficients = 8 * longest_message as u64;
    let name = |&i: &usize| contract.sites()[i].name.to_string();
    let passed_on = settings.algorithm.spec().audience() == Audience::Everybody;
    // How many sites' messages it sends, and how many of others it keeps.
    let others = contract.sites().len() as u64 - 1;
    let (sends, keeps) = if passed_on { (1 + others, others) } else { (1, degree) };
    // Averages are passed on whatever the algorithm does, and kept once they are all here.
    let averages = if contract.calibration().averaging_turns > 0 { 1 + others } else { 0 };
    let messages_at_most = degree * (rounds * sends + averages);
    SiteCost {
        site: site.name.to_string(),
        neighbours: contract.neighbours(index).iter().map(name).collect(),
        records: site.records,
        sensitivity: report.sensitivity,
        noise_std_first: report.noise_std_first,
        noise_std_last: report.noise_std_last,
        epsilon_exact: report.epsilon_exact,
        epsilon_paper: report.epsilon_paper,
        delta: report.delta,
        delta_slack: report.delta_slack,
        epsilon_curve: schedule.epsilon_curve(),
        passed_on,
        longest_message,
        public_ratio: agent.solvability.map(|s| s.planned.ratio),
        message_limit: agent.solvability.map(|s| s.message_limit),
        stopping: agent.solvability.map_or(Stopping::Public, |s| s.stopping),
        messages_at_most,
        bytes_at_most: messages_at_most * (coefficients + ENVELOPE),
        // What a site released, and what it heard from others.
        ledger_bytes_about: (rounds * (1 + keeps) + averages) * (coefficients + ENTRY),
    }
}

pub(super) fn run(
    contract: &Contract,
    site: Option<&SiteName>,
    cards: Option<&Path>,
    now: SystemTime,
    json: bool,
) -> anyhow::Result<()> {
    let wanted: Vec<usize> = match site {
        Some(name) => vec![contract.site_index(name)?],
        None => (0..contract.sites().len()).collect(),
    };
    let sites: Vec<SiteCost> = wanted.iter().map(|&index| cost(contract, index)).collect();
    let mut warnings: Vec<String> = sites.iter().flat_map(warn).collect();
    if let Some(folder) = cards {
        warnings.extend(check_cards(contract, folder, now)?);
    }
    let settings = contract.plan().settings();
    let answer = Answer {
        name: contract.name().to_string(),
        hash: contract.hash().to_string(),
        rounds: settings.rounds,
        averaging_turns: contract.calibration().averaging_turns,
        coefficients: contract.space().n_features(),
        penalty: settings.penalty,
        sites,
        warnings,
        outlook: outlook::of(contract),
    };
    if json {
        return print_json(&answer);
    }
    print(&text(contract, &answer))
}

/// What a person should think about again.
fn warn(site: &SiteCost) -> Vec<String> {
    let mut warnings = Vec::new();
    if site.records < FEW_RECORDS {
        warnings.push(format!(
            "{} has only {} records, so one of them moves its model by as much as {} and its noise is large (standard \
             deviation {} in the first round): let it take part together with another site, or allow a larger epsilon",
            site.site,
            site.records,
            upper_text(site.sensitivity),
            lower_text(site.noise_std_first)
        ));
    }
    if site.delta * site.records as f64 >= 1.0 {
        warnings.push(format!(
            "delta = {} is not below 1/{}, one over the records of {}: choose a smaller one",
            delta_text(site.delta),
            site.records,
            site.site
        ));
    }
    warnings
}

/// Cards of the plan's sites that do not fit or run out, and sites without a card.
fn check_cards(contract: &Contract, folder: &Path, now: SystemTime) -> anyhow::Result<Vec<String>> {
    let cards = cards_in(folder)?;
    let mut warnings = Vec::new();
    for site in contract.sites() {
        match cards.iter().find(|card| *card.name() == site.name) {
            None => warnings.push(format!("there is no card of {} in {}", site.name, folder.display())),
            Some(card) => match contract.check_card(card, now) {
                Ok(_) => warnings.extend(expiry_warning(card, now)),
                Err(error) => warnings.push(error.to_string()),
            },
        }
    }
    Ok(warnings)
}

fn text(contract: &Contract, answer: &Answer) -> String {
    let settings = contract.plan().settings();
    let silence = match contract.silence() {
        Silence::Wait => "the others wait for a silent site".to_owned(),
        Silence::Leave { after_seconds } => {
            format!("a site that is silent for {after_seconds} s is left behind")
        }
    };
    let mut text = format!(
        "Plan {}, hash {}\n{}, loss {}, regulariser {}, {} weights, {} rounds{}; {silence}.\n\n{}\n\n{}\n\n{}\n\n{}\n",
        answer.name,
        answer.hash,
        settings.algorithm.title(),
        settings.loss,
        settings.regularizer,
        settings.weights,
        answer.rounds,
        answer.penalty.map_or(String::new(), |penalty| format!(", penalty {penalty}")),
        privacy_table(answer),
        traffic_table(answer),
        stopping_table(answer),
        explanation(contract, answer),
    );
    if let Some(outlook) = &answer.outlook {
        text += &format!("\n{}", outlook.text());
    }
    for warning in &answer.warnings {
        text += &format!("\nWarning: {warning}.\n");
    }
    text
}

fn privacy_table(answer: &Answer) -> Table {
    let middle = answer.rounds.div_ceil(2);
    let mut table = columns(&[
        "site".to_owned(),
        "records".to_owned(),
        "sensitivity Δ".to_owned(),
        "noise σ, first round".to_owned(),
        "last round".to_owned(),
        "ε after round 1".to_owned(),
        format!("round {middle}"),
        format!("all {}", answer.rounds),
        "paper's ε".to_owned(),
        "δ".to_owned(),
    ]);
    for site in &answer.sites {
        let after = |round: u32| epsilon_text(site.epsilon_curve[round as usize - 1].exact);
        table.add_row([
            site.site.clone(),
            site.records.to_string(),
            upper_text(site.sensitivity),
            lower_text(site.noise_std_first),
            lower_text(site.noise_std_last),
            after(1),
            after(middle),
            epsilon_text(site.epsilon_exact),
            epsilon_text(site.epsilon_paper),
            format!("{} ({} for the grid)", delta_text(site.delta), delta_text(site.delta_slack)),
        ]);
    }
    table
}

fn traffic_table(answer: &Answer) -> Table {
    let mut table = columns(
        &["site", "neighbours", "messages, at most", "bytes, at most", "ledger, about", "who"]
            .map(str::to_owned),
    );
    for site in &answer.sites {
        let shown: Vec<&str> = site.neighbours.iter().take(6).map(String::as_str).collect();
        let more = site.neighbours.len().saturating_sub(shown.len());
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        table.add_row([
            site.site.clone(),
            site.neighbours.len().to_string(),
            site.messages_at_most.to_string(),
            size(site.bytes_at_most),
            size(site.ledger_bytes_about),
            shown.join(", ") + &rest,
        ]);
    }
    table
}

/// What could make a site stop in the middle, which its neighbours would see.
fn stopping_table(answer: &Answer) -> Table {
    let mut table = columns(
        &["site", "rounding, of the tolerance", "allowed", "longest model used", "stops by"]
            .map(str::to_owned),
    );
    for site in &answer.sites {
        table.add_row([
            site.site.clone(),
            site.public_ratio.map_or_else(|| "nothing is solved".to_owned(), upper_text),
            site.public_ratio.map_or_else(String::new, |_| MOST_RATIO.to_string()),
            site.message_limit.map_or_else(String::new, |limit| format!("{limit:.1e}")),
            match site.stopping {
                Stopping::Public => "public numbers alone",
                Stopping::SolverMayStall => "public numbers, or a solver that stalls",
            }
            .to_owned(),
        ]);
    }
    table
}

/// For somebody who signs for the data and not for the mathematics. Of several sites, the promise is that of the one with the largest ε.
fn explanation(contract: &Contract, answer: &Answer) -> String {
    let reports = (contract.sites().iter().zip(&contract.calibration().agents))
        .filter(|(site, _)| answer.sites.iter().any(|shown| shown.site == site.name.as_str()))
        .filter_map(|(_, agent)| Some(agent.noise.as_ref()?.report()));
    let largest = reports.max_by(|a, b| a.epsilon_exact.total_cmp(&b.epsilon_exact));
    let promise = largest.as_ref().map_or_else(String::new, PrivacyReport::statement);
    let passed_on = match answer.sites.iter().any(|site| site.passed_on) {
        true => " It carries the site's signature, and is passed on to all sites of the plan.",
        false => "",
    };
    let numbers = match answer.sites.iter().map(|site| site.longest_message).max() {
        Some(longest) if longest > answer.coefficients => format!("at most {longest}"),
        _ => answer.coefficients.to_string(),
    };
    let averaging = match answer.averaging_turns {
        0 => "",
        _ => {
            " After that every site sends the average of what it has sent, which is passed on to all sites of the plan; that uses only \
             what was sent before and costs nothing more."
        }
    };
    format!(
        "For a data protection officer: no record leaves a site. In each of {} rounds a site sends its neighbours a list of {numbers} \
         numbers with random noise added on purpose.{passed_on} {promise}{averaging} Every number is rounded so that the true cost is \
         not above it.",
        answer.rounds,
    )
}

fn columns(header: &[String]) -> Table {
    let mut table = plain(header);
    align_right(&mut table, 1..header.len());
    table
}

/// A number of bytes as a person reads it, rounded up.
fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..10_000_000 => format!("{} kB", bytes.div_ceil(1000)),
        _ => format!("{} MB", bytes.div_ceil(1_000_000)),
    }
}
