//! An algorithm of one's own, in one file: ADMM in which an agent listens to its neighbours but moves only part of the way.
//!
//! A specification says what the algorithm is called, needs and guarantees, and how much noise it takes; the state says what happens
//! in a round. P-ADMM's noise serves it unchanged, because the private step is P-ADMM's.
#![expect(clippy::print_stdout, reason = "a program that shows something")]

use std::sync::Arc;

use padmm::core::agent::AgentError;
use padmm::core::algorithm::{
    Algorithm, AlgorithmInputs, AlgorithmSpec, ConsensusAdmm, Description, GraphNeeded, Guarantee, Local,
    Needs, P_ADMM,
};
use padmm::core::calibration::{CalibrationInputs, SiteCalibration};
use padmm::core::plan::OwnSetting;
use padmm::core::solvable::Demand;
use padmm::prelude::*;
use padmm::privacy::{Computed, Drawn, PrivacyError, PublicVector};

/// The specification.
#[derive(Debug)]
struct Cautious;

const CAUTION: OwnSetting = OwnSetting {
    name: "caution",
    value: "C",
    help: "Share of the old model that is kept in every round",
    default: 0.5,
    allows: |caution| (0.0..1.0).contains(&caution),
    rule: "at least 0 and below 1",
};

impl AlgorithmSpec for Cautious {
    fn describe(&self) -> &'static Description {
        &Description {
            name: "cautious",
            title: "cautious P-ADMM",
            reference: "this example",
            summary: "P-ADMM whose kept model moves part of the way",
            needs: Needs::Nothing,
            graph: GraphNeeded::Any,
            guarantee: Guarantee::ExactGaussian,
            uses: &["decay"],
            own: &[CAUTION],
            between_sites: false,
            survives_loss: true,
        }
    }

    fn calibrate(&self, site: &CalibrationInputs<'_>) -> Result<SiteCalibration, PrivacyError> {
        P_ADMM.spec().calibrate(site)
    }

    fn start(&self, inputs: &AlgorithmInputs<'_>) -> Box<dyn Algorithm> {
        Box::new(State {
            admm: ConsensusAdmm::new(inputs.penalty, inputs.n_features, inputs.degree()),
            model: PublicVector::zeros(inputs.n_features),
            caution: inputs.settings.own.value(&CAUTION),
        })
    }

    fn demand(
        &self,
        site: &CalibrationInputs<'_>,
        calibration: &SiteCalibration,
        size: f64,
        walk: f64,
    ) -> Option<Demand> {
        P_ADMM.spec().demand(site, calibration, size, walk)
    }
}

/// One agent's state. All of it is public: records are seen in `compute` only.
struct State {
    admm: ConsensusAdmm,
    model: PublicVector,
    caution: f64,
}

impl Algorithm for State {
    fn demand(&mut self, round: u32) -> Option<Demand> {
        self.admm.demand(round)
    }

    fn compute(&mut self, round: u32, drawn: &Drawn, local: Local<'_>) -> Result<Computed, AgentError> {
        self.admm.compute(round, drawn, local)
    }

    fn finish_turn(&mut self, turn: u32, own: Option<&PublicVector>, others: &[Arc<PublicVector>]) {
        self.admm.finish_turn(turn, own, others);
        self.model.scale(self.caution);
        self.model.add_scaled(1.0 - self.caution, self.admm.own());
    }

    fn model(&self) -> &PublicVector {
        &self.model
    }

    fn modulus(&self, strong_convexity: f64) -> f64 {
        self.admm.modulus(strong_convexity)
    }

    fn drop_edge(&mut self, slot: usize) {
        self.admm.drop_edge(slot);
    }

    fn dual(&self) -> &PublicVector {
        self.admm.dual()
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for caution in [0.0, 0.5] {
        let run = Simulation::new(datasets::adult()?)
            .graph(Graph::ring(5)?)
            .algorithm(&Cautious)
            .set("caution", caution)
            .privacy(Budget::new(1.0, 1e-5)?)
            .run()?;
        println!("caution {caution}: loss {:.4}, ε = {:?}", run.loss(), run.privacy().epsilon());
    }
    Ok(())
}
