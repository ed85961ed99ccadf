//! What is looked at outside this machine: neighbours and relays.

use std::collections::BTreeMap;

use padmm_core::printable::printable;

use super::Checks;
use crate::identity::{Home, WayOut};
use crate::site::{Site, SiteStatus};
use crate::transport::quic::{PeerAddress, Probed, Prober, Unreached, Unrelayed, probe};

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
    let way_out = match WayOut::of(home.config(), home.card()) {
        Ok(way_out) => way_out,
        Err(error) => return checks.failed("network", &error),
    };
    relay_on_card(checks, home, &way_out);
    let prober = Prober {
        secret: home.transport().to_bytes(),
        listen: home.config().listen(),
        way_out: way_out.clone(),
        peers,
    };
    let found = match probe(prober) {
        Ok(found) => found,
        Err(error) => return checks.failed("network", &error),
    };
    if let Some((url, reached)) = way_out.relay.as_deref().zip(found.relay) {
        relay(checks, url, &way_out, reached.err());
    }
    let found = found.neighbours;
    for name in names.iter().filter(|(site, _)| !found.contains_key(site)).map(|(_, name)| name) {
        let advice = "mend the way to the relay first";
        checks.bad(&format!("neighbour {name}"), "not asked: the relay is the only way there", advice);
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

/// Others look for this site at the relay that its card names.
fn relay_on_card(checks: &mut Checks, home: &Home, way_out: &WayOut) {
    if let Some(relay) = way_out.relay.as_deref().filter(|relay| home.card().relay() != Some(relay)) {
        let named = home.card().relay().unwrap_or("none");
        checks.bad(
            "card",
            format!("site.toml names the relay {relay}, and this site's card names {named}, where others look for it"),
            "make a card that names it with `padmm-site site move`, and send it to the others; or correct `relay` in site.toml",
        );
    }
}

/// The way to the relay, step by step: a step that was not come to is not shown.
fn relay(checks: &mut Checks, url: &str, way_out: &WayOut, fault: Option<Unrelayed>) {
    use Unrelayed::{Denied, NoRelay, ProxyCredentials, ProxyRefuses, ProxySilent, Silent, Tls, Untrusted};
    let said = fault.as_ref().map(|fault| printable(&fault.to_string()).into_owned()).unwrap_or_default();
    let inspected = match way_out.authorities.len() {
        0 => "this machine's certificate store",
        _ => "this machine's certificate store and `authority`",
    };
    if let Some(proxy) = way_out.shown_proxy() {
        let proxy = printable(proxy);
        match &fault {
            Some(ProxySilent(_)) => {
                let advice = "check `proxy` in site.toml (host, port, http or https), and ask the network's operators whether this machine may use it";
                return checks.bad("proxy", format!("{proxy}: {said}"), advice);
            }
            Some(ProxyCredentials) => {
                let advice = "check the user in `proxy` and the password in `proxy-password-file` or PADMM_PROXY_PASSWORD; only basic authentication is spoken, so if the proxy wants another kind, ask for an account or a rule without one";
                return checks.bad("proxy", format!("{proxy}: {said}"), advice);
            }
            Some(ProxyRefuses(_)) => {
                let advice = format!(
                    "ask the proxy's operators to allow the method CONNECT from this machine to {url}, and the operator of the relay whether it runs"
                );
                return checks.bad("proxy", format!("{proxy}: {said}"), advice);
            }
            _ => checks.good("proxy", format!("{proxy} answers, and connects to the relay")),
        }
    }
    let is_encrypted = url.starts_with("https://");
    match &fault {
        Some(Untrusted(_)) => {
            let advice = "if the hospital's firewall looks into TLS, or the relay has a certificate of its own authority, get that authority's certificate as PEM and name it with `authority = \"file.pem\"` below `[network]` in site.toml; if neither is so, somebody is in between";
            return checks.bad("relay certificate", said, advice);
        }
        Some(Tls(_)) => {
            let advice = "the relay's certificate must be for the name in its URL and within its dates: tell the relay's operator, and check this machine's clock";
            return checks.bad("relay certificate", said, advice);
        }
        Some(Silent(_)) => {
            let advice = "let the firewall allow this machine to call that address, or name the hospital's proxy with `proxy` below `[network]` in site.toml; and ask the relay's operator whether it runs";
            return checks.bad("relay", format!("{url}: {said}"), advice);
        }
        _ if is_encrypted => checks.good("relay certificate", format!("trusted by {inspected}")),
        _ => {}
    }
    match &fault {
        Some(Denied(_)) => {
            let advice =
                "send this site's present card to the relay's operator, who adds it to the relay's cards";
            checks.bad("relay", format!("{url}: {said}"), advice);
        }
        Some(NoRelay(_)) => {
            let advice = "check the URL, and ask the relay's operator for its version: it must be the one that goes with this program. A proxy that does not let WebSockets through looks alike";
            checks.bad("relay", format!("{url}: {said}"), advice);
        }
        _ => checks.good("relay", format!("{url} is reached, and lets this site in")),
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
         this machine must be allowed to send UDP packets out and to receive the answers. Two sites of which neither reaches the other need a relay on both cards"
    )
}
