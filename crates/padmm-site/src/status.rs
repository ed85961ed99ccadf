//! What a running site shows to its own people, as a page, as metrics, and in a terminal.

mod metrics;
mod page;
pub(crate) mod server;

use padmm_commands::table::{align_right, plain};
use padmm_core::printable::printable;
use padmm_node::site::{NeighbourStatus, SiteState, SiteStatus, utc};
use padmm_privacy::words::{delta_text, epsilon_text, lower_text};

/// After so many seconds without a word from the session, people are told that it computes.
const QUIET: u64 = 5;

/// Where the run stands, in a sentence.
fn sentence(status: &SiteStatus) -> String {
    let quiet = status.alive_at.saturating_sub(status.at);
    match (status.state, &status.waiting) {
        (SiteState::Finished, Some(waiting)) => format!("The model is written. {}", capital(waiting)),
        (SiteState::Finished, None) => "The model is written.".to_owned(),
        (SiteState::Stopped, _) => {
            "It was asked to stop, or an error ended it: the last lines of the log say which.".to_owned()
        }
        (_, Some(waiting)) => capital(waiting),
        (_, None) if quiet > QUIET => {
            format!("In {}: computing for {quiet} s; it answers its neighbours meanwhile.", status.place)
        }
        (_, None) => format!("In {}.", status.place),
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| format!("{}{}.", first.to_uppercase(), letters.as_str()))
}

fn ago(silent: Option<u64>) -> String {
    match silent {
        None => "none since the start".to_owned(),
        Some(0 | 1) => "just now".to_owned(),
        Some(seconds) => format!("{seconds} s ago"),
    }
}

fn how(neighbour: &NeighbourStatus) -> String {
    match &neighbour.route {
        Some(route) if route.direct => format!("directly, {}", route.address),
        Some(route) => format!("through the relay {}", route.address),
        None if neighbour.lost => "left behind".to_owned(),
        None if neighbour.done => "has its model and left".to_owned(),
        None if neighbour.addresses.is_empty() => "not connected; it has to call".to_owned(),
        None => format!("not connected; looked for at {}", neighbour.addresses.join(", ")),
    }
}

fn free(status: &SiteStatus) -> String {
    status.disk_free.map_or_else(|| "unknown".to_owned(), |bytes| format!("{} MB free", bytes >> 20))
}

/// What was spent and what is left, each rounded to the safe side.
fn epsilons(status: &SiteStatus) -> Vec<(String, String)> {
    let privacy = &status.privacy;
    // The plan's δ and the cap's may differ, and numbers at different δ are not compared by eye.
    let fact = |name: &str, value: String, delta: f64| {
        (name.to_owned(), format!("{value} at δ = {}", delta_text(delta)))
    };
    let (cap, plan) = (privacy.delta_cap, privacy.delta_plan);
    vec![
        fact("ε of this run so far", epsilon_text(privacy.epsilon_run), cap),
        fact("ε of the whole plan", epsilon_text(privacy.epsilon_plan), plan),
        fact("ε of all runs on these records", epsilon_text(privacy.epsilon_spent), cap),
        fact("cap of all runs", epsilon_text(privacy.epsilon_cap), cap),
        fact("cap minus spent", lower_text(privacy.epsilon_left()), cap),
    ]
}

/// The newest payloads, newest first.
fn left_lines(status: &SiteStatus) -> Vec<Vec<String>> {
    let line = |l: &padmm_node::site::EgressLine| {
        let what = if l.again { format!("{}, again", l.stage) } else { l.stage.clone() };
        vec![l.at.clone(), what, l.turn.to_string(), l.to.clone(), l.bytes.to_string(), l.sha256.clone()]
    };
    status.egress.newest.iter().rev().map(line).collect()
}

/// The status for a terminal.
pub(crate) fn text(status: &SiteStatus, is_alive: bool) -> String {
    let mut facts = vec![
        ("site".to_owned(), status.site.clone()),
        (
            "run".to_owned(),
            format!("{}, plan {}", status.run, status.plan.chars().take(12).collect::<String>()),
        ),
        (
            "process".to_owned(),
            match is_alive {
                true => format!("runs, version {}", status.program),
                false if status.alive_at > 0 => format!("does not run; last seen {}", utc(status.alive_at)),
                false => "does not run; this is what the ledger says".to_owned(),
            },
        ),
        ("round".to_owned(), format!("{} of {}", status.round, status.rounds)),
        ("now".to_owned(), if is_alive { sentence(status) } else { ended(status).to_owned() }),
    ];
    facts.extend(epsilons(status));
    facts.push((
        "left this site".to_owned(),
        format!("{} payloads, {} bytes", status.egress.payloads, status.egress.bytes),
    ));
    if status.disk_free.is_some() {
        facts.push(("disk".to_owned(), free(status)));
    }
    let width = facts.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    let mut out: String =
        facts.iter().map(|(name, value)| format!("{name:width$}  {}\n", printable(value))).collect();
    if !status.neighbours.is_empty() {
        let mut table = plain(["neighbour", "last sign", "round trip", "signed", "waited for", "way"]);
        for n in &status.neighbours {
            let yes = |is_so: bool| if is_so { "yes" } else { "no" }.to_owned();
            let round_trip =
                n.route.as_ref().map_or_else(String::new, |r| format!("{:.0} ms", r.round_trip_ms));
            let way = printable(&how(n)).into_owned();
            table.add_row([
                printable(&n.name).into_owned(),
                ago(n.silent),
                round_trip,
                yes(n.signed),
                yes(n.awaited),
                way,
            ]);
        }
        align_right(&mut table, [2]);
        out += &format!("\n{table}\n");
    }
    let newest = status.log.len().saturating_sub(8);
    for line in &status.log[newest..] {
        out += &format!(
            "{}{} {:<7} {}\n",
            if line == &status.log[newest] { "\n" } else { "" },
            printable(&line.at),
            printable(&line.level),
            printable(&line.message)
        );
    }
    out
}

fn ended(status: &SiteStatus) -> &'static str {
    match status.state {
        SiteState::Finished => "finished: there is a model",
        SiteState::Waiting => "not begun: nothing has been spent on this run; `site run` starts it",
        SiteState::Running | SiteState::Stopped => "not finished: `site run` continues it",
    }
}
