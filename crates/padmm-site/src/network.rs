//! A network on one machine, made the way a consortium makes it: homes, cards, a plan, everybody's word.

use std::net::UdpSocket;
use std::path::{Path, PathBuf};

use anyhow::Context;
use padmm_core::graph::GraphSpec;
use padmm_core::plan::PlanDraft;
use padmm_core::schema::Schema;
use padmm_data::write_atomically;
use padmm_node::contract::{Acceptance, Contract, ContractDraft, Silence, SiteEntry};
use padmm_node::identity::{Cap, Home, InitRequest, SiteName};

use crate::test_hooks::TestHooks;

mod processes;

/// One site, with its files.
pub(crate) struct LocalSite {
    pub name: SiteName,
    /// The folder of its keys, plans and ledger.
    pub home: PathBuf,
    /// Its records, as CSV.
    pub data: PathBuf,
    /// Its ledger, once it runs.
    pub ledger: PathBuf,
}

/// All sites, with what they agreed to.
pub(crate) struct Network {
    /// The sites, in the plan's order.
    pub sites: Vec<LocalSite>,
    /// The plan that all have accepted.
    pub contract: Contract,
}

/// What sites compute between them.
pub(crate) struct Study {
    /// What the columns of all files mean.
    pub schema: Schema,
    /// The plan, apart from who takes part.
    pub settings: PlanDraft,
    /// Who talks to whom.
    pub graph: GraphSpec,
    /// Every site's name, and its records as CSV.
    pub sites: Vec<(String, String)>,
}

/// Name of the plan, and of its folder in every home.
const RUN: &str = "demo";

impl Network {
    /// Makes homes, cards, data files, a plan and every site's acceptance in `folder`.
    pub(crate) fn make(folder: &Path, study: Study) -> anyhow::Result<Self> {
        let Study { schema, settings, graph, sites: parts } = study;
        let ports = free_ports(parts.len())?;
        let now = padmm_node::clock::now();
        let (mut sites, mut homes, mut entries) = (vec![], vec![], vec![]);
        for ((name, text), port) in parts.into_iter().zip(ports) {
            let name = SiteName::new(name)?;
            let home = folder.join(name.as_str());
            let request = InitRequest {
                addresses: vec![format!("127.0.0.1:{port}")],
                listen: format!("127.0.0.1:{port}"),
                data: Some(PathBuf::from("records.csv")),
                cap: Some(Cap { epsilon: 2.0 * settings.epsilon, delta: settings.delta }),
                ..InitRequest::new(name.clone())
            };
            let made = Home::init(&home, &request, now)?;
            let data = home.join("records.csv");
            write_atomically(&data, false, text.as_bytes())?;
            let records = padmm_data::encode_site_file(&data, &schema)?.records.n_records();
            entries.push(SiteEntry { name: name.clone(), records, fingerprint: made.card().fingerprint() });
            sites.push(LocalSite { name, ledger: home.join("ledgers/records.ledger"), home, data });
            homes.push(made);
        }
        let run = SiteName::new(RUN)?;
        let contract =
            ContractDraft::new(run, schema, settings, entries, &graph, Silence::Wait, None)?.check()?;
        homes.iter().try_for_each(|home| agree(home, &homes, &contract))?;
        Ok(Self { sites, contract })
    }

    /// Runs all sites to their end as processes, killing and restarting some `kills` times; with `show`, their progress is drawn.
    pub(crate) fn run(&self, kills: u32, show: bool, hooks: &TestHooks) -> anyhow::Result<()> {
        processes::run(self, kills, show, hooks)
    }

    /// The model that a site ended with.
    pub(crate) fn model_file(&self, site: usize) -> PathBuf {
        self.sites[site].home.join("runs").join(RUN).join("model.json")
    }
}

/// Gives a site the cards of the others, the plan and its own word on it.
fn agree(home: &Home, all: &[Home], contract: &Contract) -> anyhow::Result<()> {
    for other in all.iter().filter(|h| h.name() != home.name()) {
        home.cards().import(other.card(), false)?;
    }
    let folder = home.run_dir(contract.name());
    std::fs::create_dir_all(&folder)?;
    write_atomically(&folder.join("plan.toml"), false, contract.to_toml().as_bytes())?;
    let word = Acceptance::accept(contract, home.name(), home.identity())?;
    let path = folder.join(format!("{}.accept", home.name()));
    write_atomically(&path, false, word.to_toml().as_bytes())?;
    Ok(())
}

/// Ports that are free now, all at once so that they differ.
fn free_ports(n: usize) -> anyhow::Result<Vec<u16>> {
    let sockets: Vec<UdpSocket> =
        (0..n).map(|_| UdpSocket::bind("127.0.0.1:0")).collect::<Result<_, _>>().context("no free port")?;
    sockets.iter().map(|s| Ok(s.local_addr()?.port())).collect()
}
