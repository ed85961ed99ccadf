//! The whole thing: five site processes of the test build.

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Instant, SystemTime};

use padmm_core::plan::{Output, PlanDraft};
use padmm_core::schema::Schema;
use padmm_node::contract::{Acceptance, ContractDraft, Silence, SiteEntry};
use padmm_node::identity::{Cap, Home, InitRequest, SiteName};

use crate::{FEATURES, SITES};

/// Rounds a second, and the memory of a site in MiB while it waits for its neighbours.
pub(crate) fn run(rounds: u32, in_memory: bool) -> (f64, f64) {
    let folder = tempfile::tempdir_in(".").expect("a folder here");
    let homes = make(folder.path(), rounds);
    let start = |home: &PathBuf| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_padmm-testbuild"));
        command.args(["site", "run", "--run", "bench", "--test-noise-seed", "1", "--home"]).arg(home);
        if in_memory {
            command.arg("--test-ledger-in-memory");
        }
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("a process")
    };
    // All but one wait for the last: that is what an idle site is like.
    let mut children: Vec<Child> = homes[..SITES - 1].iter().map(start).collect();
    let logs: Vec<_> = children.iter_mut().map(|c| c.stderr.take().expect("a log")).collect();
    let mut readers: Vec<_> = logs.into_iter().map(BufReader::new).collect();
    let mut line = String::new();
    readers[0].read_line(&mut line).expect("it says whom it waits for");
    let memory = resident(children[0].id());
    children.push(start(&homes[SITES - 1]));
    readers.push(BufReader::new(children[SITES - 1].stderr.take().expect("a log")));
    let seconds = readers
        .into_iter()
        .map(|reader| std::thread::spawn(move || time(reader, rounds)))
        .collect::<Vec<_>>()
        .into_iter()
        .map(|t| t.join().expect("it ends"))
        .fold(0.0, f64::max);
    for mut child in children {
        assert!(child.wait().expect("it ends").success(), "every site finishes");
    }
    (f64::from(rounds - 1) / seconds, memory)
}

/// Seconds from a site's first round to its last.
fn time(reader: impl BufRead, rounds: u32) -> f64 {
    let (mut start, mut end) = (Instant::now(), Instant::now());
    for line in reader.lines().map_while(Result::ok) {
        if line.contains(": round 1 of") {
            start = Instant::now();
        } else if line.contains(&format!(": round {rounds} of")) {
            end = Instant::now();
        }
    }
    (end - start).as_secs_f64()
}

/// Resident memory in MiB.
fn resident(process: u32) -> f64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let kib =
        text.lines().find_map(|l| l.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}

fn make(folder: &Path, rounds: u32) -> Vec<PathBuf> {
    let columns: String = (0..FEATURES)
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
    let header: String = (0..FEATURES).map(|j| format!("c{j},")).collect::<String>() + "y\n";
    let row = |value: &str, label: u8| {
        (0..FEATURES).map(|_| format!("{value},")).collect::<String>() + &format!("{label}\n")
    };
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
        let records = header.clone() + &row("0", 1) + &row("0", 0);
        std::fs::write(home.dir().join("records.csv"), records).expect("records");
        entries.push(SiteEntry { name, records: 2, fingerprint: home.card().fingerprint() });
        homes.push(home);
    }
    // Records of zeros and a large penalty: the local problem is nothing beside the network.
    let settings =
        PlanDraft { rounds, penalty: Some(10.0), decay: 1.0, output: Output::Last, ..PlanDraft::default() };
    let run = SiteName::new("bench").expect("a name");
    let graph = "ring".parse().expect("a graph");
    let contract = ContractDraft::new(run.clone(), schema, settings, entries, &graph, Silence::Wait, None)
        .and_then(ContractDraft::check)
        .expect("a contract");
    for home in &homes {
        for other in homes.iter().filter(|h| h.name() != home.name()) {
            home.cards().import(other.card(), false).expect("a card");
        }
        let folder = home.run_dir(&run);
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("plan.toml"), contract.to_toml()).expect("a plan");
        let word = Acceptance::accept(&contract, home.name(), home.identity()).expect("a word");
        std::fs::write(folder.join(format!("{}.accept", home.name())), word.to_toml()).expect("a file");
    }
    homes.iter().map(|h| h.dir().to_owned()).collect()
}
