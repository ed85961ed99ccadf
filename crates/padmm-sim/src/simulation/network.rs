//! The agents of a simulation, and how their messages reach each other.

use std::sync::Arc;

use padmm_baselines::mechanism::Unprotected;
use padmm_core::agent::{Agent, AgentSetup};
use padmm_core::algorithm::SharedWork;
use padmm_core::calibration::Calibration;
use padmm_core::message::{Incoming, Outgoing, Recipients, SiteIndex};
use padmm_core::plan::Plan;
use padmm_privacy::{Gate, Mechanism, MemoryLedger, NoiseSource, RequiredCertificate, SecureNoise};
use rayon::prelude::*;

use super::{NoiseKind, PreparedSimulation};
use crate::{InsecureSeededNoise, SimError};

/// Messages that a thread hears at least before another one is worth its while.
const MESSAGES: usize = 128;

impl PreparedSimulation {
    /// Every agent that owes a message computes and sends it; everybody that it is for hears it.
    pub(super) fn exchange(&self, agents: &mut [Agent]) -> Result<(), SimError> {
        let stopped = |i: usize| move |problem| SimError::Agent { site: self.names[i].clone(), problem };
        let speak = |(i, agent): (usize, &mut Agent)| {
            let message = agent.poll_message().map_err(stopped(i))?;
            Ok(message.map(|m| (Incoming::from(&m), m)))
        };
        let spoken: Vec<Option<(Incoming, Outgoing)>> = agents
            .par_iter_mut()
            .enumerate()
            // Every solve can go to whichever thread is free.
            .with_max_len(1)
            .map(speak)
            // All of them first, then the first error in order: which site is named must not depend on threads.
            .collect::<Vec<_>>()
            .into_iter()
            .collect::<Result<_, SimError>>()?;
        let everybody: Vec<usize> = (0..agents.len()).collect();
        let is_passed_on = spoken.iter().flatten().any(|(_, said)| said.to == Recipients::Everybody);
        let listen = |(i, agent): (usize, &mut Agent)| {
            let heard = if is_passed_on { &everybody } else { self.graph.neighbours(i) };
            let messages = heard.iter().filter_map(|&j| spoken[j].as_ref());
            let mut own = messages.filter(|(_, said)| said.is_for(SiteIndex(i), &self.graph));
            own.try_for_each(|(heard, _)| agent.handle_message(heard)).map_err(stopped(i))
        };
        // Hearing a neighbour is little work: a few messages are not worth a second thread. Where everybody is heard, what follows the
        // last message is a step with matrices.
        let n_messages: usize = (0..agents.len()).map(|i| self.graph.degree(i)).sum();
        let worth_a_thread =
            if is_passed_on { 1 } else { (MESSAGES * agents.len()).div_ceil(n_messages.max(1)) };
        agents
            .par_iter_mut()
            .enumerate()
            .with_min_len(worth_a_thread)
            .map(listen)
            .collect::<Vec<_>>()
            .into_iter()
            .collect()
    }

    pub(super) fn agents(
        &self,
        plan: &Plan,
        calibration: &Calibration,
        run: u32,
    ) -> Result<Vec<Agent>, SimError> {
        let shared = SharedWork::default();
        (0..self.names.len()).map(|i| self.agent(plan, calibration, run, i, &shared)).collect()
    }

    fn agent(
        &self,
        plan: &Plan,
        calibration: &Calibration,
        run: u32,
        i: usize,
        shared: &SharedWork,
    ) -> Result<Agent, SimError> {
        let shard = Arc::clone(&self.shards[i]);
        let (setup, problem) =
            AgentSetup::of(plan, &self.graph, calibration, SiteIndex(i), &self.space, shard);
        let setup = AgentSetup { shared: shared.clone(), ..setup };
        let mechanism: Box<dyn Mechanism> = match &setup.calibration.noise {
            Some(schedule) => {
                let (modulus, tolerance) = (setup.calibration.modulus, setup.calibration.tolerance);
                schedule.mechanism(RequiredCertificate { modulus, tolerance })?
            }
            None => Box::new(Unprotected::new(self.space.n_features())?),
        };
        let (run_name, name) = (format!("simulation-{run}"), self.names[i].clone());
        let ledger = Box::new(MemoryLedger::new());
        let gate = Gate::new(run_name, name, mechanism, self.noise_source(run, i), ledger);
        Ok(Agent::new(setup, problem, gate))
    }

    pub(super) fn noise_source(&self, run: u32, agent: usize) -> Box<dyn NoiseSource> {
        match self.setting.noise {
            NoiseKind::Seeded => Box::new(InsecureSeededNoise::new(self.setting.seed, run, agent)),
            NoiseKind::Secure => Box::new(SecureNoise),
        }
    }
}
