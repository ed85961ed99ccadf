//! The status for Prometheus, in its text format.

use std::fmt::Write;

use padmm_node::site::{NeighbourStatus, SiteState, SiteStatus};

/// A metric's values: each with its labels, in braces or empty.
type Values = Vec<(String, f64)>;

pub(super) fn text(status: &SiteStatus) -> String {
    let mut out = String::new();
    let mut one = |name: &str, kind: &str, help: &str, value: f64| {
        family(&mut out, name, kind, help, &[(String::new(), value)])
    };
    let privacy = &status.privacy;
    one("padmm_round", "gauge", "Private rounds that were released.", f64::from(status.round));
    one("padmm_rounds", "gauge", "Private rounds of the plan.", f64::from(status.rounds));
    let waited = if status.waiting.is_some() { status.waited as f64 } else { 0.0 };
    one(
        "padmm_waiting_seconds",
        "gauge",
        "How long the site has waited for others; 0 if it does not.",
        waited,
    );
    let age = status.alive_at.saturating_sub(status.at) as f64;
    one(
        "padmm_status_age_seconds",
        "gauge",
        "Since the session last said how far it is; it grows while the site computes.",
        age,
    );
    one(
        "padmm_epsilon_run",
        "gauge",
        "Privacy loss of this run so far, at the delta of the cap.",
        privacy.epsilon_run,
    );
    one("padmm_epsilon_plan", "gauge", "Privacy loss of the whole plan, at its delta.", privacy.epsilon_plan);
    one(
        "padmm_epsilon_spent",
        "gauge",
        "Privacy loss of all runs on these records so far.",
        privacy.epsilon_spent,
    );
    one(
        "padmm_epsilon_cap",
        "gauge",
        "Privacy loss that all runs on these records may have.",
        privacy.epsilon_cap,
    );
    one(
        "padmm_egress_payloads_total",
        "counter",
        "Payloads that left since the site started.",
        status.egress.payloads as f64,
    );
    one(
        "padmm_egress_bytes_total",
        "counter",
        "Bytes of the payloads that left since the site started.",
        status.egress.bytes as f64,
    );
    if let Some(free) = status.disk_free {
        one("padmm_disk_free_bytes", "gauge", "Free bytes where the ledger is.", free as f64);
    }
    let states = [
        (SiteState::Waiting, "waiting"),
        (SiteState::Running, "running"),
        (SiteState::Finished, "finished"),
        (SiteState::Stopped, "stopped"),
    ];
    let states: Values = states
        .iter()
        .map(|(state, name)| (format!("{{state=\"{name}\"}}"), flag(status.state == *state)))
        .collect();
    family(&mut out, "padmm_state", "gauge", "How far the site is: 1 for the state that it is in.", &states);
    let mut each = |name: &str, help: &str, value: &dyn Fn(&NeighbourStatus) -> Option<f64>| {
        let labelled =
            |n: &NeighbourStatus| Some((format!("{{neighbour=\"{}\"}}", label(&n.name)), value(n)?));
        let values: Values = status.neighbours.iter().filter_map(labelled).collect();
        family(&mut out, name, "gauge", help, &values);
    };
    each("padmm_neighbour_connected", "Whether the neighbour is connected.", &|n| {
        Some(flag(n.route.is_some()))
    });
    each(
        "padmm_neighbour_direct",
        "Whether packets go to the neighbour itself, not through a relay.",
        &|n| n.route.as_ref().map(|r| flag(r.direct)),
    );
    each("padmm_neighbour_round_trip_seconds", "How long a packet and its answer take.", &|n| {
        n.route.as_ref().map(|r| r.round_trip_ms / 1e3)
    });
    each("padmm_neighbour_silent_seconds", "Since the neighbour's last sign of life.", &|n| {
        n.silent.map(|s| s as f64)
    });
    each("padmm_neighbour_awaited", "Whether something of the neighbour is waited for.", &|n| {
        Some(flag(n.awaited))
    });
    let certificates: Values = (status.certificates.iter())
        .map(|c| (format!("{{site=\"{}\"}}", label(&c.name)), flag(c.soon)))
        .collect();
    family(
        &mut out,
        "padmm_certificate_expires_soon",
        "gauge",
        "Whether a certificate ends within 30 days, or has ended.",
        &certificates,
    );
    let labels =
        [("site", &status.site), ("run", &status.run), ("plan", &status.plan), ("version", &status.program)];
    let labels: Vec<String> =
        labels.iter().map(|(name, value)| format!("{name}=\"{}\"", label(value))).collect();
    family(
        &mut out,
        "padmm_info",
        "gauge",
        "Which site, run, plan and version this is.",
        &[(format!("{{{}}}", labels.join(",")), 1.0)],
    );
    out
}

fn flag(is_so: bool) -> f64 {
    f64::from(u8::from(is_so))
}

fn family(out: &mut String, name: &str, kind: &str, help: &str, values: &[(String, f64)]) {
    if values.is_empty() {
        return;
    }
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
    for (labels, value) in values {
        let _ = writeln!(out, "{name}{labels} {value}");
    }
}

/// A label's value, with what the format gives a meaning escaped.
fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
