//! One site's side of a run, as a machine without I/O: messages go in through `handle_message`, messages and results
//! come out of `poll_message` and `outcome`. The simulator and the network drive this same code.

use std::sync::Arc;

use padmm_privacy::{Debit, Gate, PrivacyError, PrivacyReport, Public};

use crate::algorithm::{Algorithm, AlgorithmKind, Local, LocalProblem};
use crate::message::{Content, Incoming, Outgoing, Stage};
use crate::solver::Solver;
use crate::step;
use crate::terms::AgentTerms;

/// Why an agent stops. Nothing has left it that was not charged.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AgentError {
    /// The gate refused.
    #[error(transparent)]
    Privacy(#[from] PrivacyError),
    /// The local solve found no certificate; the round stops. The residual is computed from records: for the site's own log.
    #[error(
        "round {round}: the local solve reached a residual of {residual:.3e}, not the {tolerance:.3e} that the sensitivity was derived with; nothing was released. Use a looser --tolerance (it enters the noise) or a larger --penalty"
    )]
    ToleranceNotReached {
        /// Round.
        round: u32,
        /// What was reached.
        residual: f64,
        /// What was needed.
        tolerance: f64,
    },
    /// A message from somebody who is no neighbour.
    #[error("a message came from site {from}, which is not a neighbour of site {site}; it was not used")]
    NotANeighbour {
        /// The receiver.
        site: usize,
        /// The sender.
        from: usize,
    },
    /// A message from a round that cannot be on its way yet.
    #[error("site {from} sent round {round} while site {site} is in round {current}; it was not used")]
    WrongRound {
        /// The receiver.
        site: usize,
        /// The sender.
        from: usize,
        /// The message's round.
        round: u32,
        /// The receiver's round.
        current: u32,
    },
    /// A message of another length.
    #[error(
        "site {from} sent a model of {found} coefficients where {expected} are expected; it was not used"
    )]
    WrongLength {
        /// The sender.
        from: usize,
        /// Its length.
        found: usize,
        /// The run's.
        expected: usize,
    },
}

/// Where an agent is in its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// It owes its message of this stage and round.
    Speak(Stage, u32),
    /// It has spoken and waits for the neighbours' messages of this stage and round.
    Listen(Stage, u32),
    /// Its run is over.
    Done,
}

struct Neighbour {
    site: usize,
    gossip_weight: f64,
    /// Messages that are here and not used yet: of this round, and of the next from a neighbour that is ahead.
    inbox: Vec<Incoming>,
}

/// What a site has at the end.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The paper's: the last release.
    pub last: Public,
    /// The smoothed model of MATH §2.
    pub smoothed: Public,
}

/// Everything that an agent starts from.
pub struct AgentSetup {
    /// Its place in the plan's list of sites.
    pub site: usize,
    /// Its neighbours' places in ascending order, with their gossip weights.
    pub neighbours: Vec<(usize, f64)>,
    /// Which algorithm.
    pub algorithm: AlgorithmKind,
    /// `η`
    pub penalty: f64,
    /// Private rounds.
    pub rounds: u32,
    /// Gossip rounds.
    pub gossip_rounds: u32,
    /// Derived terms.
    pub terms: AgentTerms,
}

/// One site's side of a run.
pub struct Agent {
    site: usize,
    rounds: u32,
    gossip_rounds: u32,
    tolerance: f64,
    neighbours: Vec<Neighbour>,
    problem: LocalProblem,
    algorithm: Box<dyn Algorithm>,
    gate: Gate,
    solver: Solver,
    warm_start: Vec<f64>,
    released: Arc<Public>,
    average: Public,
    average_weight: f64,
    phase: Phase,
    /// Neighbours whose message of the current stage and round is here.
    n_arrived: usize,
}

/// The noise was calibrated for a problem: stops if that is not the problem that will be solved.
fn check_terms(setup: &AgentSetup, problem: &LocalProblem) {
    let terms = &setup.terms;
    assert_eq!(terms.n_records, problem.data.n_records(), "the terms are those of this number of records");
    let modulus =
        step::primal_quadratic(setup.penalty, setup.neighbours.len()) + problem.penalty.strong_convexity();
    assert!(modulus >= terms.modulus, "the terms are those of this penalty, degree and regulariser");
    let Some(inputs) = terms.noise.as_ref().and_then(|n| n.sensitivity().inputs().copied()) else { return };
    let slope = problem.loss.slope_bound().expect("a loss under privacy has a bounded slope");
    assert!(
        slope * problem.data.norm_bound() <= inputs.gradient_bound,
        "the terms are those of this loss and norm bound"
    );
    assert_eq!(inputs.n_records, terms.n_records, "noise and terms agree on the number of records");
    assert!(terms.tolerance <= inputs.tolerance && terms.modulus >= inputs.modulus, "noise and terms agree");
}

impl Agent {
    /// An agent before its first round. Its terms must be those of its problem.
    pub fn new(setup: AgentSetup, problem: LocalProblem, gate: Gate) -> Self {
        let p = problem.data.n_features();
        assert!(setup.neighbours.is_sorted_by_key(|n| n.0), "neighbours come in ascending order");
        check_terms(&setup, &problem);
        let neighbour =
            |&(site, gossip_weight): &(usize, f64)| Neighbour { site, gossip_weight, inbox: vec![] };
        Agent {
            site: setup.site,
            rounds: setup.rounds,
            gossip_rounds: setup.gossip_rounds,
            tolerance: setup.terms.tolerance,
            neighbours: setup.neighbours.iter().map(neighbour).collect(),
            algorithm: setup.algorithm.start(setup.penalty, p, setup.neighbours.len()),
            problem,
            gate,
            solver: Solver::new(),
            warm_start: vec![0.0; p],
            released: Arc::new(Public::zeros(p)),
            average: Public::zeros(p),
            average_weight: 0.0,
            phase: Phase::Speak(Stage::Model, 1),
            n_arrived: 0,
        }
    }

    /// The message that the agent owes its neighbours, if it owes one. This is where a round is computed.
    ///
    /// After an error the agent stays where it is; the gate does not release the round a second time.
    pub fn poll_message(&mut self) -> Result<Option<Outgoing>, AgentError> {
        let Phase::Speak(stage, round) = self.phase else { return Ok(None) };
        let content = match stage {
            Stage::Model => {
                let Agent { gate, algorithm, problem, solver, warm_start, tolerance, .. } = self;
                let release = gate.release(round, |drawn| {
                    algorithm.compute(
                        round,
                        drawn,
                        Local { problem, solver, warm_start, tolerance: *tolerance },
                    )
                })?;
                self.released = Arc::new(Public::from(&release));
                self.average.add_scaled(step::smoothing_weight(round), &self.released);
                self.average_weight += step::smoothing_weight(round);
                Content::Model(release)
            }
            Stage::Average => Content::Average(self.average.clone()),
        };
        self.phase = Phase::Listen(stage, round);
        self.advance();
        Ok(Some(Outgoing { from: self.site, round, content }))
    }

    /// Takes in a neighbour's message. One that was taken in before is passed over; any other that does not belong here
    /// is an error and changes nothing.
    pub fn handle_message(&mut self, message: &Incoming) -> Result<(), AgentError> {
        let Incoming { from, stage, round, .. } = *message;
        let site = self.site;
        let Ok(slot) = self.neighbours.binary_search_by_key(&from, |n| n.site) else {
            return Err(AgentError::NotANeighbour { site, from });
        };
        let neighbour = &self.neighbours[slot];
        let (found, expected) = (message.vector.len(), self.released.len());
        if found != expected {
            return Err(AgentError::WrongLength { from, found, expected });
        }
        let current = match self.phase {
            Phase::Speak(s, r) | Phase::Listen(s, r) => (s, r),
            Phase::Done => return Ok(()),
        };
        if (stage, round) < current || neighbour.inbox.iter().any(|m| (m.stage, m.round) == (stage, round)) {
            return Ok(());
        }
        if (stage, round) != current && Some((stage, round)) != self.following(current) {
            return Err(AgentError::WrongRound { site, from, round, current: current.1 });
        }
        self.neighbours[slot].inbox.push(message.clone());
        self.n_arrived += usize::from((stage, round) == current);
        self.advance();
        Ok(())
    }

    /// Goes on without a neighbour, exactly: its edge's dual leaves `α_i`, and the rest of the run is that of the
    /// graph without the edge. The noise stays what it was charged as.
    pub fn drop_neighbour(&mut self, site: usize) {
        if let Some(slot) = self.neighbours.iter().position(|n| n.site == site) {
            self.neighbours.remove(slot);
            self.algorithm.drop_edge(slot);
            self.count_arrived();
            self.advance();
        }
    }

    /// The stage and round after `(stage, round)`.
    fn following(&self, (stage, round): (Stage, u32)) -> Option<(Stage, u32)> {
        match stage {
            Stage::Model if round < self.rounds => Some((Stage::Model, round + 1)),
            Stage::Model if self.gossip_rounds > 0 => Some((Stage::Average, 1)),
            Stage::Average if round < self.gossip_rounds => Some((Stage::Average, round + 1)),
            _ => None,
        }
    }

    /// Concludes the round that is being listened to, once every neighbour's message is there.
    fn advance(&mut self) {
        let Phase::Listen(stage, round) = self.phase else { return };
        if self.n_arrived < self.neighbours.len() {
            return;
        }
        let here = |n: &Neighbour| n.inbox.iter().position(|m| (m.stage, m.round) == (stage, round));
        let mut others = Vec::with_capacity(self.neighbours.len());
        for neighbour in &mut self.neighbours {
            let place = here(neighbour).expect("every neighbour's message is here");
            others.push(neighbour.inbox.swap_remove(place).vector);
        }
        match stage {
            Stage::Model => {
                self.algorithm.conclude(round, &self.released, &others);
                if round == self.rounds {
                    self.average.scale(1.0 / self.average_weight);
                }
            }
            Stage::Average => {
                let weights = self.neighbours.iter().map(|n| n.gossip_weight);
                let weighted: Vec<(f64, &Public)> = weights.zip(others.iter().map(|o| &**o)).collect();
                self.average = step::gossip(&self.average, &weighted);
            }
        }
        self.phase = match self.following((stage, round)) {
            Some((stage, round)) => Phase::Speak(stage, round),
            None => Phase::Done,
        };
        self.count_arrived();
    }

    /// Counts anew after the round or the neighbours have changed.
    fn count_arrived(&mut self) {
        let (Phase::Speak(stage, round) | Phase::Listen(stage, round)) = self.phase else { return };
        let is_here = |n: &&Neighbour| n.inbox.iter().any(|m| (m.stage, m.round) == (stage, round));
        self.n_arrived = self.neighbours.iter().filter(is_here).count();
    }

    /// The models, once the run is over.
    pub fn outcome(&self) -> Option<Outcome> {
        (self.phase == Phase::Done)
            .then(|| Outcome { last: (*self.released).clone(), smoothed: self.average.clone() })
    }

    /// `x̃_i` of the last round that the agent spoke in.
    pub fn released(&self) -> &Public {
        &self.released
    }

    /// The agent's own average over the rounds so far: what it would keep, before gossip, if the run stopped here.
    pub fn smoothed_so_far(&self) -> Public {
        let mut average = self.average.clone();
        if matches!(self.phase, Phase::Speak(Stage::Model, _) | Phase::Listen(Stage::Model, _)) {
            average.scale(1.0 / self.average_weight.max(f64::MIN_POSITIVE));
        }
        average
    }

    /// The algorithm's state, which is public.
    pub fn algorithm(&self) -> &dyn Algorithm {
        &*self.algorithm
    }

    /// The agent's own records, for metrics at its own site or in a simulation.
    pub fn problem(&self) -> &LocalProblem {
        &self.problem
    }

    /// What the run costs by its plan; none without privacy.
    pub fn privacy_report(&self) -> Option<PrivacyReport> {
        self.gate.report()
    }

    /// Where the gate's noise comes from, in words.
    pub fn noise_description(&self) -> &'static str {
        self.gate.noise_description()
    }

    /// What has been charged.
    pub fn debits(&self) -> &[Debit] {
        self.gate.debits()
    }
}
