//! What a run has cost after each of its rounds.

use std::sync::Arc;

use padmm_core::calibration::Calibration;
use padmm_privacy::{Schedule, SpentEpsilon};
use rayon::prelude::*;

/// What a round and all rounds up to it cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spent {
    pub rho: f64,
    pub rho_so_far: f64,
    pub epsilon: SpentEpsilon,
}

/// The largest over agents, round by round. Sites of one size and degree have one schedule; each is looked at once.
pub(crate) fn spending(calibration: &Calibration) -> Vec<Spent> {
    let mut schedules: Vec<&Arc<dyn Schedule>> = vec![];
    for schedule in calibration.agents.iter().filter_map(|a| a.noise.as_ref()) {
        if !schedules.iter().any(|known| Arc::ptr_eq(known, schedule)) {
            schedules.push(schedule);
        }
    }
    let curve = |schedule: &&Arc<dyn Schedule>| -> Vec<Spent> {
        let of = |(round, epsilon)| Spent {
            rho: schedule.rho(round),
            rho_so_far: schedule.rho_spent(round),
            epsilon,
        };
        (1..=schedule.rounds()).zip(schedule.epsilon_curve()).map(of).collect()
    };
    let larger = |a: Spent, b: &Spent| Spent {
        rho: a.rho.max(b.rho),
        rho_so_far: a.rho_so_far.max(b.rho_so_far),
        epsilon: SpentEpsilon {
            exact: a.epsilon.exact.max(b.epsilon.exact),
            paper: a.epsilon.paper.max(b.epsilon.paper),
        },
    };
    let curves: Vec<Vec<Spent>> = schedules.par_iter().map(curve).collect();
    let Some((first, rest)) = curves.split_first() else { return vec![] };
    let over_agents = |(k, &spent): (usize, &Spent)| rest.iter().fold(spent, |a, c| larger(a, &c[k]));
    first.iter().enumerate().map(over_agents).collect()
}
