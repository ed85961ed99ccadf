//! A network on one machine, made the way a consortium makes it: homes, cards, a plan, everybody's word.

use std::net::UdpSocket;
use std::path::{Path, PathBuf};

use anyhow::Context;
use padmm_core::plan::PlanDraft;
use padmm_node::contract::{Acceptance, Contract, ContractDraft, Silence, SiteEntry};
use padmm_node::identity::{Cap, Home, InitRequest, SiteName};

/// One site of the demonstration.
pub struct DemoSite {
    /// Its name.
    pub name: SiteName,
    /// Its folder.
    pub home: PathBuf,
    /// Its records.
    pub data: PathBuf,
    /// Its ledger, once it runs.
    pub ledger: PathBuf,
}

/// All of them, with what they agreed to.
pub struct Network {
    /// Where everything is.
    pub folder: PathBuf,
    /// The sites, in the plan's order.
    pub sites: Vec<DemoSite>,
    /// The plan.
    pub contract: Contract,
}

/// The plan's name.
pub const RUN: &str = "demo";

impl Network {
    /// Makes homes, cards, data files, a plan and every site's acceptance.
    pub fn make(
        folder: &Path,
        dataset: &str,
        agents: Option<usize>,
        graph: &str,
        settings: PlanDraft,
    ) -> anyhow::Result<Network> {
        let set = padmm_data::shipped_set(dataset)?;
        let schema = set.schema();
        let parts = deal(folder, dataset, agents)?;
        anyhow::ensure!(parts.len() >= 2, "--agents must be at least 2");
        let ports = free_ports(parts.len())?;
        let now = padmm_node::clock::now();
        let (mut sites, mut homes, mut entries) = (vec![], vec![], vec![]);
        for ((name, text), port) in parts.into_iter().zip(ports) {
            let name = SiteName::new(name)?;
            let home = folder.join(name.as_str());
            let cap = Cap { epsilon: 2.0 * settings.epsilon, delta: settings.delta };
            let request = InitRequest {
                addresses: vec![format!("127.0.0.1:{port}")],
                listen: format!("127.0.0.1:{port}"),
                data: Some(PathBuf::from("records.csv")),
                cap: Some(cap),
                ..InitRequest::new(name.clone())
            };
            let made = Home::init(&home, &request, now)?;
            let data = home.join("records.csv");
            padmm_data::write_atomically(&data, false, text.as_bytes())?;
            let records = padmm_data::encode_site_file(&data, &schema)?.records.n_records();
            entries.push(SiteEntry { name: name.clone(), records, fingerprint: made.card().fingerprint() });
            sites.push(DemoSite { name, ledger: home.join("ledgers/records.ledger"), home, data });
            homes.push(made);
        }
        let run = SiteName::new(RUN)?;
        let draft =
            ContractDraft::new(run.clone(), schema, settings, entries, &graph.parse()?, Silence::Wait, None)?;
        let contract = draft.check()?;
        for home in &homes {
            for other in homes.iter().filter(|h| h.name() != home.name()) {
                home.cards().import(other.card(), false)?;
            }
            let folder = home.run_dir(&run);
            std::fs::create_dir_all(&folder)?;
            padmm_data::write_atomically(&folder.join("plan.toml"), false, contract.to_toml().as_bytes())?;
            let word = Acceptance::accept(&contract, home.name(), home.identity())?;
            let path = folder.join(format!("{}.accept", home.name()));
            padmm_data::write_atomically(&path, false, word.to_toml().as_bytes())?;
        }
        Ok(Network { folder: folder.to_owned(), sites, contract })
    }

    /// The run's folder of a site.
    pub fn run_folder(&self, site: usize) -> PathBuf {
        self.sites[site].home.join("runs").join(RUN)
    }

    /// The coefficients that a site ended with.
    pub fn model_values(&self, site: usize) -> anyhow::Result<Vec<f64>> {
        Ok(padmm_data::read_model(&self.run_folder(site).join("model.json"))?.values().to_vec())
    }
}

/// Every site's records as CSV: hospitals by their column, anything else dealt in turn.
fn deal(folder: &Path, dataset: &str, agents: Option<usize>) -> anyhow::Result<Vec<(String, String)>> {
    let all = folder.join("all.csv");
    padmm_data::export(dataset, &all, false)?;
    let text = std::fs::read_to_string(&all)?;
    for file in [&all, &all.with_extension("schema.toml")] {
        std::fs::remove_file(file).with_context(|| format!("{} cannot be removed", file.display()))?;
    }
    let schema = padmm_data::shipped_set(dataset)?.schema();
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers()?.clone();
    let column = schema.site().and_then(|site| header.iter().position(|h| h == site.column));
    let by_column = column.filter(|_| agents.is_none());
    let n = agents.unwrap_or(5);
    let mut parts: Vec<(String, csv::Writer<Vec<u8>>)> = vec![];
    for (row, record) in reader.records().enumerate() {
        let record = record?;
        let name = match by_column {
            Some(column) => record[column].to_owned(),
            None => format!("agent-{}", row % n + 1),
        };
        let place = match parts.iter().position(|p| p.0 == name) {
            Some(place) => place,
            None => {
                let mut writer = csv::Writer::from_writer(vec![]);
                writer.write_record(&header)?;
                parts.push((name, writer));
                parts.len() - 1
            }
        };
        parts[place].1.write_record(&record)?;
    }
    let finish = |(name, writer): (String, csv::Writer<Vec<u8>>)| -> anyhow::Result<(String, String)> {
        Ok((name, String::from_utf8(writer.into_inner()?)?))
    };
    parts.into_iter().map(finish).collect()
}

/// Ports that are free now, all at once so that they differ.
fn free_ports(n: usize) -> anyhow::Result<Vec<u16>> {
    let sockets: Vec<UdpSocket> =
        (0..n).map(|_| UdpSocket::bind("127.0.0.1:0")).collect::<Result<_, _>>().context("no free port")?;
    sockets.iter().map(|s| Ok(s.local_addr()?.port())).collect()
}
