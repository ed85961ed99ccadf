//! Rounds between five sites over links that are slow, narrow or lossy, with ledgers on disk: how long a round takes against the one-way
//! delay and the local work, and how many messages are sent a second time.
//!
//! `cargo bench -p padmm-lab --bench wan -- --delay 20 --loss 0.01 --graph complete`
//!
//! `--rate` is in bits a second, `--features` the length of a model, `--series` repeats the run with further seeds, and `--program` is a
//! `padmm-testbuild` other than this one, for a comparison.
#![expect(clippy::print_stdout, reason = "a program that shows something")]

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::time::{Duration, Instant, SystemTime};

use padmm_core::plan::{Output, PlanDraft};
use padmm_core::schema::Schema;
use padmm_lab::links::{Conditions, Links};
use padmm_node::contract::{Acceptance, Contract, ContractDraft, Silence, SiteEntry};
use padmm_node::identity::{Cap, Card, Home, InitRequest, SiteName};

const SITES: usize = 5;
const RUN: &str = "wan";

/// The value of a flag, or what it is without it.
fn flag<T: FromStr>(name: &str, otherwise: T) -> T {
    let arguments: Vec<String> = std::env::args().collect();
    let place = arguments.iter().position(|a| a == name);
    let value = place.and_then(|k| arguments.get(k + 1)).map(|text| text.parse().ok());
    value.map_or(otherwise, |value| value.unwrap_or_else(|| panic!("{name} needs a value")))
}

fn main() {
    let program: PathBuf = flag("--program", env!("CARGO_BIN_EXE_padmm-testbuild").into());
    let graph: String = flag("--graph", "ring".to_owned());
    let (rounds, features): (u32, usize) = (flag("--rounds", 50), flag("--features", 8));
    let delay = Duration::from_millis(flag("--delay", 20));
    let (loss, rate): (f64, f64) = (flag("--loss", 0.0), flag("--rate", 0.0));
    let rate = (rate > 0.0).then_some(rate);
    let quiet = Conditions::default();
    let local = run(&program, &graph, rounds, features, quiet).seconds;
    println!(
        "{SITES} sites, {graph}, {rounds} rounds, {features} coefficients; {delay:?} one-way, loss {loss}, rate {rate:?}"
    );
    println!("without delay: {:.1} ms a round", 1e3 * local);
    for seed in 1..=flag("--series", 1) {
        let told = run(&program, &graph, rounds, features, Conditions { delay, loss, rate, seed });
        println!(
            "mean {:.1} ms a round, {:.2} times (delay + local); p90 {:.1} ms; {} repeats of {} messages ({:.1} %); {:.0} kB a round over all links",
            1e3 * told.seconds,
            told.seconds / (delay.as_secs_f64() + local),
            1e3 * told.late,
            told.repeats,
            told.messages,
            100.0 * told.repeats as f64 / told.messages.max(1) as f64,
            told.bytes as f64 / 1e3 / f64::from(rounds),
        );
    }
}

/// What a run was like.
struct Told {
    /// Mean seconds a round, of the slowest site.
    seconds: f64,
    /// Nine of ten rounds were faster, at all sites.
    late: f64,
    messages: usize,
    repeats: usize,
    bytes: u64,
}

fn run(program: &Path, graph: &str, rounds: u32, features: usize, conditions: Conditions) -> Told {
    let folder = tempfile::tempdir_in(".").expect("a folder here");
    let links = Links::new(conditions);
    let homes = make(folder.path(), graph, rounds, features, &links);
    let mut children: Vec<_> = homes
        .iter()
        .map(|home| {
            let mut command = Command::new(program);
            command.args(["site", "run", "--run", RUN, "--test-noise-seed", "1", "--home"]).arg(home);
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("a process")
        })
        .collect();
    let readers: Vec<_> = children
        .iter_mut()
        .map(|child| BufReader::new(child.stderr.take().expect("a log")))
        .map(|log| std::thread::spawn(move || times(log)))
        .collect();
    let times: Vec<Vec<Instant>> = readers.into_iter().map(|r| r.join().expect("it ends")).collect();
    for mut child in children {
        assert!(child.wait().expect("it ends").success(), "every site finishes");
    }
    let mean = |t: &Vec<Instant>| (t[t.len() - 1] - t[0]).as_secs_f64() / (t.len() - 1) as f64;
    let seconds = times.iter().map(mean).fold(0.0, f64::max);
    let mut single: Vec<f64> =
        times.iter().flat_map(|t| t.windows(2).map(|w| (w[1] - w[0]).as_secs_f64())).collect();
    single.sort_by(f64::total_cmp);
    let (mut messages, mut repeats) = (0, 0);
    for home in &homes {
        let sent = std::fs::read_to_string(home.join("runs").join(RUN).join("egress.csv")).expect("a list");
        messages += sent.lines().skip(1).filter(|line| line.ends_with("false")).count();
        repeats += sent.lines().skip(1).filter(|line| line.ends_with("true")).count();
    }
    let bytes = links.pairs().into_iter().map(|pair| links.bytes(pair)).sum();
    Told { seconds, late: single[single.len() * 9 / 10], messages, repeats, bytes }
}

/// When each round's release left.
fn times(log: impl BufRead) -> Vec<Instant> {
    let is_round = |line: &String| line.contains(": round ") && line.contains("bytes to each");
    log.lines().map_while(Result::ok).filter(is_round).map(|_| Instant::now()).collect()
}

fn make(folder: &Path, graph: &str, rounds: u32, features: usize, links: &Links) -> Vec<PathBuf> {
    let columns: String = (0..features)
        .map(|j| format!("[[columns]]\nname = \"c{j}\"\nkind = \"numeric\"\nlower = 0.0\nupper = 1.0\n"))
        .collect();
    let text = format!(
        "norm_bound = 1.0\nintercept = false\nmissing = \"drop\"\n[label]\nkind = \"binary\"\ncolumn = \"y\"\npositive = [\"1\"]\nnegative = [\"0\"]\n{columns}"
    );
    let schema: Schema = padmm_data::parse_schema(&text, Path::new("schema.toml")).expect("a schema");
    let sockets: Vec<UdpSocket> =
        (0..SITES).map(|_| UdpSocket::bind("127.0.0.1:0").expect("a port")).collect();
    let ports: Vec<u16> = sockets.iter().map(|s| s.local_addr().expect("an address").port()).collect();
    drop(sockets);
    let row = |value: &str, last: &str| {
        (0..features).map(|_| value.to_owned() + ",").collect::<String>() + last + "\n"
    };
    let header: String = (0..features).map(|j| format!("c{j},")).collect::<String>() + "y\n";
    let (mut homes, mut entries) = (vec![], vec![]);
    for (i, port) in ports.iter().enumerate() {
        let name = SiteName::new(format!("site-{i}")).expect("a name");
        let request = InitRequest {
            addresses: vec![format!("127.0.0.1:{port}")],
            listen: format!("127.0.0.1:{port}"),
            data: Some(PathBuf::from("records.csv")),
            cap: Some(Cap { epsilon: 100.0, delta: 1e-4 }),
            ..InitRequest::new(name.clone())
        };
        let home = Home::init(&folder.join(name.as_str()), &request, SystemTime::now()).expect("a home");
        let records = header.clone() + &row("0", "1") + &row("0", "0");
        std::fs::write(home.dir().join("records.csv"), records).expect("records");
        entries.push(SiteEntry { name, records: 2, fingerprint: home.card().fingerprint() });
        homes.push(home);
    }
    // Records of zeros and a large penalty: the local problem is nothing beside the network.
    let settings = PlanDraft {
        algorithm: padmm_core::algorithm::P_ADMM,
        rounds,
        penalty: Some(10.0),
        decay: 1.0,
        output: Output::Last,
        ..PlanDraft::default()
    };
    let run = SiteName::new(RUN).expect("a name");
    let graph = graph.parse().expect("a graph");
    let contract: Contract =
        ContractDraft::new(run.clone(), schema, settings, entries, &graph, Silence::Wait, None)
            .and_then(ContractDraft::check)
            .expect("a contract");
    for (i, home) in homes.iter().enumerate() {
        for (j, other) in homes.iter().enumerate().filter(|(j, _)| *j != i) {
            let card = if contract.neighbours(i).contains(&j) {
                at_address(other, links.address((i, ports[i]), (j, ports[j])))
            } else {
                other.card().clone()
            };
            home.cards().import(&card, false).expect("a card");
        }
        let folder = home.run_dir(&run);
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("plan.toml"), contract.to_toml()).expect("a plan");
        let word = Acceptance::accept(&contract, home.name(), home.identity()).expect("a word");
        std::fs::write(folder.join(format!("{}.accept", home.name())), word.to_toml()).expect("a file");
    }
    homes.iter().map(|h| h.dir().to_owned()).collect()
}

/// A home's card, with another address in it.
fn at_address(home: &Home, address: String) -> Card {
    let (card, key) = (home.card(), home.transport().public());
    Card::sign(home.identity(), key, home.name(), card.serial(), vec![address], None, card.certificate())
        .expect("a card")
}
