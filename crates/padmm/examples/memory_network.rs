//! A network in memory, message by message. Agents are state machines: whoever moves their messages, the simulator, real sites or these
//! thirty lines, gets the same run.
#![expect(clippy::print_stdout, reason = "a program that shows something")]

use std::collections::VecDeque;
use std::sync::Arc;

use padmm::core::agent::{Agent, AgentSetup};
use padmm::core::calibration::{Calibration, NetworkFacts};
use padmm::core::message::{Incoming, SiteIndex};
use padmm::core::plan::PlanDraft;
use padmm::prelude::*;
use padmm::privacy::{Gate, MemoryLedger, RequiredCertificate, SecureNoise};
use padmm::sim::split::partition;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let heart = datasets::heart()?;
    let graph = Graph::ring(4)?;
    let sites = partition(&heart.encoded, None, Split::Site, Holdout::None, 1)?;
    let n_records: Vec<usize> = sites.shards.iter().map(|shard| shard.n_records()).collect();
    let space = heart.schema.feature_space();
    let plan = PlanDraft { rounds: 10, epsilon: 5.0, ..PlanDraft::default() }.check()?;

    // Noise follows from public facts: nothing has looked at a record yet.
    let norm_bound = heart.schema.norm_bound();
    let facts = NetworkFacts { graph: &graph, n_records: &n_records, space: &space, norm_bound };
    let calibration = Calibration::derive(&plan, &facts)?;

    let mut agents = vec![];
    for (site, shard) in sites.shards.into_iter().enumerate() {
        let (setup, problem) =
            AgentSetup::of(&plan, &graph, &calibration, SiteIndex(site), &space, Arc::new(shard));
        let required = RequiredCertificate {
            modulus: setup.calibration.modulus,
            tolerance: setup.calibration.tolerance,
        };
        let noise = setup.calibration.noise.as_ref().ok_or("a private algorithm has noise")?;
        let (run, name) = ("example".to_owned(), sites.names[site].clone());
        let (mechanism, ledger) = (noise.mechanism(required)?, Box::new(MemoryLedger::new()));
        let gate = Gate::new(run, name, mechanism, Box::new(SecureNoise), ledger);
        agents.push(Agent::new(setup, problem, gate));
    }

    let mut wire = VecDeque::new();
    while agents.iter().any(|agent| agent.outcome().is_none()) {
        for agent in &mut agents {
            if let Some(message) = agent.poll_message()? {
                wire.push_back(message);
            }
        }
        while let Some(message) = wire.pop_front() {
            for to in (0..agents.len()).filter(|&to| message.is_for(SiteIndex(to), &graph)) {
                agents[to].handle_message(&Incoming::from(&message))?;
            }
        }
    }
    for (name, agent) in sites.names.iter().zip(&agents) {
        println!("{name:>12}: {} releases were paid for", agent.debits().len());
        assert_eq!(agent.debits().len(), 10);
    }
    Ok(())
}
