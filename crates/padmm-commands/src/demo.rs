//! `demo sites`: its flags, and what the sites came to. `padmm-site` makes the sites and runs them; `padmm` compares what they came to
//! with the simulator. The first hands [`Outcome`] to the second as a file.

use std::path::PathBuf;

use padmm_core::plan::Plan;
use padmm_privacy::words::epsilon_text;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::table::{align_right, plain};

/// Flags of `demo sites`, the same in both programs.
#[derive(clap::Args, Clone, Debug)]
pub struct SitesArgs {
    /// Shipped data set: heart or adult
    #[arg(long, value_name = "NAME", default_value = "heart")]
    pub dataset: String,
    /// Number of sites that Adult is split between; the hospitals are four
    #[arg(long, value_name = "N")]
    pub agents: Option<usize>,
    /// Who talks to whom, as for `padmm simulate`
    #[arg(long, value_name = "GRAPH", default_value = "complete")]
    pub graph: String,
    /// What the sites run: p-admm, consensus-newton, private-gradient or linearized
    #[arg(long, value_name = "NAME", default_value = "p-admm")]
    pub algorithm: String,
    /// Private rounds K that share the budget [default: 50, or by the algorithm's own rule]
    #[arg(long, value_name = "K")]
    pub rounds: Option<u32>,
    /// ε of every site
    #[arg(long, value_name = "E", default_value_t = 5.0, allow_negative_numbers = true)]
    pub epsilon: f64,
    /// δ of every site, above 0 and below 1
    #[arg(long, value_name = "D", default_value_t = 1e-4, allow_negative_numbers = true)]
    pub delta: f64,
    /// How many times a site is killed and restarted on the way
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub kill: u32,
    /// Folder for the sites' homes, which must not exist; without it they are in a temporary folder that goes away
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Show no progress while it runs
    #[arg(long)]
    pub quiet: bool,
}

/// What the sites of a demonstration agreed to and came to.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// The shipped data set whose schema the sites' files have.
    pub dataset: String,
    /// The folder of the sites' homes.
    pub folder: PathBuf,
    /// The sites, in the plan's order.
    pub sites: Vec<SiteOutcome>,
    /// Who talked to whom, by index.
    pub edges: Vec<(usize, usize)>,
    /// The plan that every site accepted.
    pub plan: Plan,
    /// Seconds from the start of the first site to the end of the last.
    pub seconds: f64,
    /// Releases over all sites and rounds, as their ledgers count them.
    pub payloads: u64,
    /// Whether every site's ledger is as it was written.
    pub verified: bool,
}

/// What one site of a demonstration had, and came to.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct SiteOutcome {
    /// The site's name in the plan.
    pub name: String,
    /// Rows of its file, which is the number of its records in the plan.
    pub records: usize,
    /// The CSV file of its records.
    pub data: PathBuf,
    /// The model that it ended with.
    pub model: PathBuf,
    /// ε that its ledger says was spent; none if the ledger was not kept.
    pub epsilon: Option<f64>,
}

/// What the simulator says about the same plan on the same files.
#[derive(Clone, Debug, Default)]
pub struct Comparison {
    /// Accuracy of the first site's model on the usable records of all sites.
    pub accuracy: Option<f64>,
    /// The same for simulations with other draws of noise.
    pub simulated: Vec<f64>,
    /// Whether every release is the simulator's to the bit; known only if both drew the same noise.
    pub identical: Option<bool>,
}

impl Outcome {
    /// The object that `--json` prints: a fixed set of keys, without the accuracies.
    pub fn json(&self, comparison: &Comparison) -> Value {
        let names: Vec<&str> = self.sites.iter().map(|site| site.name.as_str()).collect();
        let spent = self.sites.iter().filter_map(|site| Some((site.name.clone(), site.epsilon?.into())));
        json!({
            "sites": names,
            "rounds": self.plan.settings().rounds,
            "seconds": self.seconds,
            "identical_to_simulator": comparison.identical,
            "ledgers_verified": self.verified,
            "epsilon_exact": spent.collect::<Map<String, Value>>(),
            "payloads": self.payloads,
        })
    }

    /// The table and what follows from it, for people; `kept` if the homes stay.
    pub fn words(&self, comparison: &Comparison, kept: bool) -> String {
        let mut table = plain(["site", "records", "neighbours", "epsilon spent", "ledger"]);
        align_right(&mut table, 1..4);
        for (i, site) in self.sites.iter().enumerate() {
            let neighbours = self.edges.iter().filter(|edge| edge.0 == i || edge.1 == i).count();
            table.add_row([
                site.name.clone(),
                site.records.to_string(),
                neighbours.to_string(),
                site.epsilon.map_or("-".to_owned(), epsilon_text),
                if self.verified { "verified" } else { "NOT verified" }.to_owned(),
            ]);
        }
        let place = if kept {
            format!("The sites' homes are in {}.\n", self.folder.display())
        } else {
            "Keep the sites' homes with --out DIR to look at plan, ledgers and what left each site.\n"
                .to_owned()
        };
        format!(
            "{table}\n\n{} sites, {} rounds in {:.1} s, {} payloads, one for each site and round.\n{}{place}",
            self.sites.len(),
            self.plan.settings().rounds,
            self.seconds,
            self.payloads,
            comparison.words(),
        )
    }
}

impl Comparison {
    fn words(&self) -> String {
        let (all, n) = (&self.simulated, self.simulated.len());
        let compared = match self.accuracy {
            Some(accuracy) if n > 0 => {
                let mean = all.iter().sum::<f64>() / n as f64;
                let least = all.iter().copied().fold(f64::MAX, f64::min);
                let most = all.iter().copied().fold(f64::MIN, f64::max);
                format!(
                    "Accuracy on all usable records (which only this demonstration can see together): {accuracy:.4}; the simulator, \
                     with the same plan and five other draws of noise: {mean:.4} ({least:.4} to {most:.4}).\n"
                )
            }
            _ => String::new(),
        };
        let identical = match self.identical {
            Some(true) => "Every released integer is the simulator's, to the bit.\n",
            Some(false) => "The released integers are NOT the simulator's.\n",
            None => "",
        };
        compared + identical
    }
}
