//! Sites on this machine that have all signed a plan, for benchmarks of rounds: their records are zeros, so that the local problem is
//! nothing beside the network.

use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use padmm_core::plan::{Output, PlanDraft};
use padmm_node::contract::{Acceptance, ContractDraft, Silence, SiteEntry};
use padmm_node::identity::{Cap, Card, Home, InitRequest, SiteName};

/// The plan's name.
pub const RUN: &str = "bench";

/// Makes `n_sites` homes in `folder`, for models of `n_features` coefficients, and says where they are.
///
/// `way` is given a site and a neighbour of it, each with its port, and says at which address the site finds that neighbour, where that is
/// not the neighbour's own.
pub fn signed_homes(
    folder: &Path,
    n_sites: usize,
    n_features: usize,
    graph: &str,
    settings: PlanDraft,
    way: impl Fn((usize, u16), (usize, u16)) -> Option<String>,
) -> Vec<PathBuf> {
    let columns: String = (0..n_features)
        .map(|j| format!("[[columns]]\nname = \"c{j}\"\nkind = \"numeric\"\nlower = 0.0\nupper = 1.0\n"))
        .collect();
    let text = format!(
        "norm_bound = 1.0\nintercept = false\nmissing = \"drop\"\n[label]\nkind = \"binary\"\ncolumn = \"y\"\npositive = [\"1\"]\nnegative = [\"0\"]\n{columns}"
    );
    let schema = padmm_data::parse_schema(&text, Path::new("schema.toml")).expect("a schema");
    let sockets: Vec<UdpSocket> =
        (0..n_sites).map(|_| UdpSocket::bind("127.0.0.1:0").expect("a port")).collect();
    let ports: Vec<u16> = sockets.iter().map(|s| s.local_addr().expect("an address").port()).collect();
    drop(sockets);
    let header: String = (0..n_features).map(|j| format!("c{j},")).collect();
    let zeros = "0,".repeat(n_features);
    let records = format!("{header}y\n{zeros}1\n{zeros}0\n");
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
        std::fs::write(home.dir().join("records.csv"), &records).expect("records");
        entries.push(SiteEntry { name, records: 2, fingerprint: home.card().fingerprint() });
        homes.push(home);
    }
    let settings = PlanDraft { penalty: Some(10.0), decay: 1.0, output: Output::Last, ..settings };
    let run = SiteName::new(RUN).expect("a name");
    let graph = graph.parse().expect("a graph");
    let contract = ContractDraft::new(run.clone(), schema, settings, entries, &graph, Silence::Wait, None)
        .and_then(ContractDraft::check)
        .expect("a contract");
    for (i, home) in homes.iter().enumerate() {
        for (j, other) in homes.iter().enumerate().filter(|(j, _)| *j != i) {
            let is_neighbour = contract.neighbours(i).contains(&j);
            let address = is_neighbour.then(|| way((i, ports[i]), (j, ports[j]))).flatten();
            let card = address.map_or_else(|| other.card().clone(), |address| at_address(other, address));
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
