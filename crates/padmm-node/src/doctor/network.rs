//! What is looked at outside this machine: neighbours and relays.

use std::collections::BTreeMap;

use padmm_core::printable::printable;

use super::Checks;
use crate::identity::Home;
use crate::site::{Site, SiteStatus};
use crate::transport::quic::{PeerAddress, Probed, Prober, Unreached, probe};

/// Certificates go by days and log lines by seconds; with more than this, people who compare logs are misled.
const MOST_APART: f64 = 120.0;

/// What a site that runs knows of its neighbours. Nobody is asked beside it: at a relay a second program with the site's key would
/// take its place.
pub(super) fn as_seen_by(checks: &mut Checks, status: &SiteStatus) {
    checks.good("running", format!("this site runs {} and is at: {}", status.run, status.place));
    for neighbour in &status.neighbours {
        let name = format!("neighbour {}", neighbour.name);
        let silent =
            neighbour.silent.map_or_else(|| "never heard".to_owned(), |s| format!("heard {s} s ago"));
        match &neighbour.route {
            Some(route) => checks.good(
                &name,
                format!(
                    "{silent}, {} at {}, round trip {:.0} ms",
                    if route.direct { "directly" } else { "through the relay" },
                    printable(&route.address),
                    route.round_trip_ms
                ),
            ),
            None if neighbour.done || neighbour.lost => {
                checks.good(&name, format!("{silent}; it is needed no more"))
            }
            None => checks.bad(
                &name,
                format!("{silent}, not connected; looked for at {}", neighbour.addresses.join(", ")),
                call(&neighbour.name),
            ),
        }
    }
}

/// Asks every neighbour who it is.
pub(super) fn ask(checks: &mut Checks, site: &Site, home: &Home) {
    let peers: Vec<PeerAddress> = site.peer_addresses();
    let names: BTreeMap<_, _> = peers.iter().map(|peer| (peer.site, peer.name.clone())).collect();
    let prober = Prober {
        secret: home.transport().to_bytes(),
        listen: home.config().listen(),
        relay: home.card().relay().map(str::to_owned),
        peers,
    };
    let (relay, found) = match probe(prober) {
        Ok(found) => found,
        Err(error) => return checks.failed("network", &error),
    };
    let url = home.card().relay().unwrap_or_default();
    match relay {
        None => {}
        Some(true) => checks.good("relay", format!("{url} is reached")),
        Some(false) => checks.bad(
            "relay",
            format!("{url} is not reached"),
            "check that the firewall lets this machine call that address by HTTP or HTTPS, and ask the relay's operator whether it runs",
        ),
    }
    let signed = site.signed();
    let mut apart: Vec<String> = vec![];
    for (who, answer) in &found {
        let name = &names[who];
        let line = format!("neighbour {name}");
        match answer {
            Ok(answer) => {
                answered(checks, &line, name, site, answer);
                if answer.clock_ahead.abs() > MOST_APART {
                    let way = if answer.clock_ahead > 0.0 { "ahead of" } else { "behind" };
                    apart.push(format!(
                        "{name}'s clock is {:.0} s {way} this machine's",
                        answer.clock_ahead.abs()
                    ));
                }
            }
            Err(why) => {
                let word = match (why, signed.contains(who)) {
                    (Unreached::Silent(_), true) => {
                        "; it has signed the plan and is offline, or a firewall is between"
                    }
                    (Unreached::Silent(_), false) => "; its signature on the plan is not here either",
                    _ => "",
                };
                checks.bad(&line, format!("{}{word}", printable(&why.to_string())), advice(why, name));
            }
        }
    }
    match (found.values().any(Result::is_ok), apart.is_empty()) {
        (false, _) => {}
        (true, true) => checks.good("clock", "as that of the neighbours that answered, within two minutes"),
        (true, false) => checks.bad("clock", apart.join("; "), "let both machines take their time from a time server (NTP); rounds do not depend on it, certificates and logs do"),
    }
}

fn answered(checks: &mut Checks, line: &str, name: &str, site: &Site, answer: &Probed) {
    let way = answer.route.as_ref().map_or_else(
        || "answers".to_owned(),
        |route| {
            let how = if route.is_direct { "directly" } else { "through the relay" };
            format!(
                "answers {how} at {}, round trip {:.0} ms",
                printable(&route.address),
                route.round_trip.as_secs_f64() * 1e3
            )
        },
    );
    let (own_plan, own_program) = (site.contract().hash().to_string(), env!("CARGO_PKG_VERSION"));
    let (program, plan) = (printable(&answer.program), printable(&answer.plan));
    if answer.program != own_program {
        let advice = "install the version that the plan names at all sites";
        checks.bad(line, format!("{way}, with version {program}, and this is {own_program}"), advice);
    } else if answer.plan != own_plan {
        let short: String = plan.chars().take(12).collect();
        let advice = format!(
            "compare the files: `padmm-site plan diff`; both sites must accept the same plan, or {name} runs another one at the moment"
        );
        checks.bad(
            line,
            format!("{way}, with another plan (hash {short}, here {})", &own_plan[..12]),
            advice,
        );
    } else {
        checks.good(line, format!("{way}, version {program}, same plan, which it has accepted"));
    }
}

fn advice(why: &Unreached, name: &str) -> String {
    match why {
        Unreached::NoAddress(_) => format!(
            "ask {name} for a card with its present address (`padmm-site site move` makes one), and check this machine's name server"
        ),
        Unreached::Silent(_) | Unreached::Failed { .. } => call(name),
        Unreached::OtherProgram(_) => format!(
            "ask {name} which version of padmm-site it runs, and compare it with `padmm-site --version` here"
        ),
        Unreached::Refused(_) => format!(
            "send {name} this site's present card; it imports it with `padmm-site site add-card` and starts again"
        ),
    }
}

fn call(name: &str) -> String {
    format!(
        "ask {name} whether its site runs (`site run` may wait there: nothing is spent before all sites are there), and whether its firewall lets UDP packets from this machine in; \
         this machine must be allowed to send UDP packets out and to receive the answers"
    )
}
