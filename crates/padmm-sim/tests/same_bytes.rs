//! Released bytes do not change unnoticed: with seeded noise, every algorithm releases on every graph that it runs on exactly
//! what `testdata/releases/digests.txt` was written from.
//!
//! After a change that is meant to change releases, `PADMM_WRITE_DIGESTS=1 cargo test --release --workspace --test sim_tests same_bytes`
//! writes the file again, and CHANGELOG's **Privacy** section says why.

use std::fmt::Write;
use std::path::Path;

use padmm_core::graph::GraphSpec;
use padmm_core::plan::{PlanDraft, SiteWeights};
use padmm_data::{Source, load};
use padmm_sim::{Holdout, NoiseKind, PreparedSimulation, SimulationPlan, Split};
use sha2::{Digest, Sha256};

const GRAPHS: [&str; 3] = ["complete", "ring", "star"];
const ROUNDS: u32 = 8;

/// A line for each data set, algorithm and graph: the digest of every site's model after every round.
fn digests() -> String {
    let mut lines = String::new();
    for dataset in ["adult", "heart"] {
        let encoded = load(&Source::Shipped(dataset.into())).unwrap().encoded;
        for algorithm in padmm_baselines::ALL {
            for graph in GRAPHS {
                let setting = SimulationPlan {
                    dataset: dataset.into(),
                    n_agents: Some(5),
                    graph: graph.parse::<GraphSpec>().unwrap(),
                    split: Split::Even,
                    holdout: Holdout::None,
                    runs: 1,
                    seed: 7,
                    noise: NoiseKind::Seeded,
                    reference: false,
                    rank_rounds: false,
                    measures: true,
                    // Adult's records do not go by five: the paper's weights, which the first digests were made with.
                    plan: PlanDraft {
                        algorithm,
                        rounds: ROUNDS,
                        weights: SiteWeights::Sites,
                        ..PlanDraft::default()
                    }
                    .check()
                    .unwrap(),
                };
                // Some algorithms run on one graph only.
                let Ok(simulation) = PreparedSimulation::prepare(setting, encoded.clone()) else { continue };
                let mut hash = Sha256::new();
                for model in simulation.models(0).unwrap().iter().flatten() {
                    model.as_slice().iter().for_each(|value| hash.update(value.to_le_bytes()));
                }
                let digest: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
                writeln!(lines, "{dataset} {} {graph} {digest}", algorithm.name()).unwrap();
            }
        }
    }
    lines
}

#[test]
fn every_algorithm_releases_the_bytes_that_it_always_released() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/releases/digests.txt");
    let found = digests();
    if std::env::var_os("PADMM_WRITE_DIGESTS").is_some() {
        std::fs::write(&path, &found).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap();
    assert_eq!(known.lines().count(), found.lines().count(), "an algorithm came or went");
    for (known, found) in known.lines().zip(found.lines()) {
        assert_eq!(known, found);
    }
}
