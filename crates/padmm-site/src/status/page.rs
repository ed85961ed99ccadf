//! The status as a page that a browser refreshes.

use padmm_commands::page::{Block, CalloutKind, Column, Page, Section, Table};
use padmm_node::site::{SiteState, SiteStatus};

use super::{ago, epsilons, free, how, left_lines, sentence};

/// Below the numbers about privacy.
const NOTE: &str = "Every cost is rounded so that the true one is not above it. Privacy losses do not simply add up: what a \
                    further plan would cost together with all this is said by padmm-site plan accept and padmm-site doctor.";
/// Of what left, and of the log: more than fits a screen is read in the files.
const MOST_ROWS: usize = 20;
/// How often the page looks for something new.
const EVERY_SECONDS: u32 = 2;

pub(super) fn html(status: &SiteStatus) -> String {
    page(status).to_live_html(EVERY_SECONDS)
}

fn page(status: &SiteStatus) -> Page {
    let names = |title: &str, columns: &[&str]| Table {
        caption: title.to_owned(),
        columns: columns.iter().map(|column| Column::text(*column)).collect(),
        ..Table::default()
    };
    let (kind, title) = match (status.state, &status.waiting) {
        (SiteState::Finished, _) => (CalloutKind::Note, "The run is finished"),
        (SiteState::Stopped, _) => (CalloutKind::Warning, "The site has stopped"),
        (SiteState::Waiting, _) => {
            (CalloutKind::Note, "Before the start: nothing has been spent on this run")
        }
        (SiteState::Running, Some(_)) => (CalloutKind::Note, "Waiting for others"),
        (SiteState::Running, None) => (CalloutKind::Note, "Running"),
    };
    let now = Section {
        title: "Now".to_owned(),
        blocks: vec![
            Block::Callout { kind, title: title.to_owned(), text: sentence(status) },
            Block::Facts(vec![
                ("Round".to_owned(), format!("{} of {}", status.round, status.rounds)),
                ("State".to_owned(), status.place.clone()),
                (
                    "Left this site".to_owned(),
                    format!("{} payloads, {} bytes", status.egress.payloads, status.egress.bytes),
                ),
                ("Disk".to_owned(), free(status)),
                ("Clock of this machine".to_owned(), padmm_node::site::utc(status.alive_at)),
            ]),
        ],
    };
    let mut neighbours = names(
        "Every neighbour, its last sign of life, and the way packets to it take.",
        &["Neighbour", "Last sign", "Way", "Round trip", "Signed", "Waited for"],
    );
    for n in &status.neighbours {
        let yes = |is_so: bool| if is_so { "yes" } else { "no" }.to_owned();
        let round_trip =
            n.route.as_ref().map_or_else(|| "–".to_owned(), |r| format!("{:.0} ms", r.round_trip_ms));
        if n.awaited {
            neighbours.highlight.push(neighbours.rows.len());
        }
        neighbours.rows.push(vec![
            n.name.clone(),
            ago(n.silent),
            how(n),
            round_trip,
            yes(n.signed),
            yes(n.awaited),
        ]);
    }
    let mut left = names(
        "The newest payloads that left, as egress.csv has them: every one is in that file.",
        &["At", "What", "Turn", "To", "Bytes", "SHA-256"],
    );
    left.rows = left_lines(status);
    left.rows.truncate(MOST_ROWS);
    let left = match left.rows.is_empty() {
        true => Block::Text("Nothing has left this site since it was started.".to_owned()),
        false => Block::Table(left),
    };
    let mut log = names("The newest lines of the log.", &["At", "Level", "Message"]);
    log.rows = status
        .log
        .iter()
        .rev()
        .take(MOST_ROWS)
        .map(|l| vec![l.at.clone(), l.level.clone(), l.message.clone()])
        .collect();
    let mut certificates = names("", &["Site", "Valid until"]);
    for c in &status.certificates {
        if c.soon {
            certificates.highlight.push(certificates.rows.len());
        }
        let until = if c.soon { format!("{}: renew it", c.last_day) } else { c.last_day.clone() };
        certificates.rows.push(vec![c.name.clone(), until]);
    }
    let section = |title: &str, blocks: Vec<Block>| Section { title: title.to_owned(), blocks };
    Page {
        title: format!("{}: {}", status.site, status.run),
        subtitle:
            "What this site is doing, for its own people. Read-only; nothing here is computed from records."
                .to_owned(),
        sections: vec![
            now,
            section("Neighbours", vec![Block::Table(neighbours)]),
            section("Privacy", vec![Block::Facts(epsilons(status)), Block::Text(NOTE.to_owned())]),
            section("What left this site", vec![left]),
            section("Certificates", vec![Block::Table(certificates)]),
            section("Log", vec![Block::Table(log)]),
        ],
        footer: format!("padmm-site {}, plan {}", status.program, status.plan),
    }
}
