//! One site's side of a run, as a machine without I/O: messages go in through `handle_message`, messages and results
//! come out of `poll_message` and `outcome`. The simulator and the network drive this same code.

use std::ops::Range;
use std::sync::Arc;

use padmm_privacy::{
    Debit, Gate, ObjectiveInputs, PrivacyError, PrivacyReport, Public, PureTarget, Schedule, Sensitivity,
};

use crate::algorithm::{Algorithm, AlgorithmKind, Duty, Local, LocalProblem, Peers, Speech, Start};
use crate::data::{Dataset, FeatureSpace};
use crate::graph::{Graph, metropolis_weight};
use crate::message::{Content, Incoming, Outgoing, Recipients, Stage};
use crate::plan::Plan;
use crate::regularizer::{Penalty, norm_up};
use crate::solvable::Judgement;
use crate::solver::Solver;
use crate::step;
use crate::terms::{AgentTerms, Solvability, Terms};

/// Largest integer of a release before its noise.
const LARGEST_ON_GRID: f64 = (1u64 << 52) as f64;

/// Why an agent stops. Nothing has left it that was not charged.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AgentError {
    /// The gate refused.
    #[error(transparent)]
    Privacy(#[from] PrivacyError),
    /// The local solve found no certificate; the round stops. The residual is computed from records: for the site's own log.
    #[error(
        "round {round}: the local solve reached a residual of {residual:.3e}, not the {tolerance:.3e} that the sensitivity was derived with; nothing was released. Use a larger --penalty or, where noise is added to the result, a looser --tolerance (it enters the noise)"
    )]
    ToleranceNotReached {
        /// Round.
        round: u32,
        /// What was reached.
        residual: f64,
        /// What was needed.
        tolerance: f64,
    },
    /// Models have become too large to compute with; decided from public numbers before the round was charged.
    #[error(
        "round {round} was not begun: with the models that were sent so far its result could be as long as {radius:.3e}, where rounding takes {ratio:.3} of the solver's tolerance or the release's grid ends. Nothing was charged or released for it, and any other records would have stopped it too. A neighbour sent something enormous; if all are honest, use a larger --penalty or a looser --tolerance"
    )]
    TooLarge {
        /// Round.
        round: u32,
        /// How long the result could be.
        radius: f64,
        /// The part of the tolerance that rounding takes then.
        ratio: f64,
    },
    /// A message that is longer than the plan allows.
    #[error(
        "site {from} sent a model of length {length:.3e}, and this plan allows {limit:.3e}; it was not used"
    )]
    TooLong {
        /// The sender.
        from: usize,
        /// Its length.
        length: f64,
        /// The longest that is used.
        limit: f64,
    },
    /// A message from somebody who is no neighbour.
    #[error("a message came from site {from}, which is not a neighbour of site {site}; it was not used")]
    NotANeighbour {
        /// The receiver.
        site: usize,
        /// The sender.
        from: usize,
    },
    /// A message from a turn that cannot be on its way yet.
    #[error("site {from} sent turn {turn} while site {site} is in turn {current}; it was not used")]
    WrongTurn {
        /// The receiver.
        site: usize,
        /// The sender.
        from: usize,
        /// The message's turn.
        turn: u32,
        /// The receiver's turn.
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
    /// It owes its message of this stage and turn.
    Speak(Stage, u32),
    /// It has spoken, or had nothing to say, and waits for the neighbours' messages of this stage and turn.
    Listen(Stage, u32),
    /// Its run is over.
    Done,
}

struct Neighbour {
    site: usize,
    gossip_weight: f64,
    /// Messages that are here and not used yet: of this turn, and of the next from a neighbour that is ahead.
    inbox: Vec<Incoming>,
}

/// What a site has at the end.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The paper's: the model after the last round, for most algorithms the last release.
    pub last: Public,
    /// The smoothed model of MATH §2.
    pub smoothed: Public,
}

/// Everything that an agent starts from.
pub struct AgentSetup {
    /// Its place in the plan's list of sites.
    pub site: usize,
    /// Sites in all.
    pub n_agents: usize,
    /// Its neighbours' places in ascending order, with their gossip weights.
    pub neighbours: Vec<(usize, f64)>,
    /// What is run.
    pub plan: Plan,
    /// `η` as the terms were derived with it.
    pub penalty: f64,
    /// Gossip rounds.
    pub gossip_rounds: u32,
    /// Derived terms.
    pub terms: AgentTerms,
}

impl AgentSetup {
    /// The agent in place `site` of a network, and its share of the problem.
    pub fn of(
        plan: &Plan,
        graph: &Graph,
        terms: &Terms,
        site: usize,
        space: &FeatureSpace,
        data: Arc<Dataset>,
    ) -> (AgentSetup, LocalProblem) {
        let n_agents = terms.agents.len();
        let weighted = |&j: &usize| (j, metropolis_weight(graph, site, j));
        let settings = plan.settings();
        let setup = AgentSetup {
            site,
            n_agents,
            neighbours: graph.neighbours(site).iter().map(weighted).collect(),
            plan: plan.clone(),
            penalty: terms.penalty,
            gossip_rounds: terms.gossip_rounds,
            terms: terms.agents[site].clone(),
        };
        let penalty = Penalty::new(&settings.regularizer, space, 1.0 / n_agents as f64);
        (setup, LocalProblem { data, loss: settings.loss, penalty })
    }
}

/// One site's side of a run.
pub struct Agent {
    site: usize,
    kind: AlgorithmKind,
    rounds: u32,
    turns_per_round: u32,
    gossip_rounds: u32,
    tolerance: f64,
    solvability: Option<Solvability>,
    /// Exponents of the grids of all rounds, where releases have one.
    grids: Vec<i32>,
    neighbours: Vec<Neighbour>,
    problem: LocalProblem,
    algorithm: Box<dyn Algorithm>,
    gate: Gate,
    solver: Solver,
    warm_start: Vec<f64>,
    /// What the agent said last through the gate.
    released: Arc<Public>,
    /// What it said in this turn.
    said: Option<Arc<Public>>,
    /// What it has heard in this turn; empty between turns.
    heard: Vec<Arc<Public>>,
    average: Public,
    average_weight: f64,
    phase: Phase,
    /// Neighbours that are waited for and whose message of the current stage and turn is here.
    n_arrived: usize,
}

/// Where releases are made on grids, the grids.
fn grids(terms: &AgentTerms) -> Vec<i32> {
    let schedule = terms.noise.as_ref().and_then(Schedule::as_gaussian);
    schedule.map_or(vec![], |s| (1..=s.rounds()).map(|round| s.grid_exponent(round)).collect())
}

/// The noise was calibrated for a problem: stops if that is not the problem that will be solved.
fn check_terms(terms: &AgentTerms, algorithm: &dyn Algorithm, problem: &LocalProblem) {
    assert_eq!(terms.n_records, problem.data.n_records(), "the terms are those of this number of records");
    let values = problem.data.n_numeric() + problem.data.n_hot();
    let is_bounded = |s: Solvability| s.bounds.covers(problem.data.n_records(), values, terms.tolerance);
    assert!(terms.solvability.is_none_or(is_bounded), "rounds are judged by bounds for these records");
    let modulus = algorithm.modulus(problem.penalty.strong_convexity());
    assert!(modulus >= terms.modulus, "the terms are those of this penalty, degree and regulariser");
    let (slope, row) = (problem.loss.slope_bound(), problem.data.norm_bound());
    let check_records = |gradient_bound: f64, n_records: usize| {
        let slope = slope.expect("a loss under privacy has a bounded slope");
        assert!(slope * row <= gradient_bound, "the terms are those of this loss and norm bound");
        assert_eq!(n_records, terms.n_records, "noise and terms agree on the number of records");
    };
    let check_output = |sensitivity: Sensitivity| {
        let Some(inputs) = sensitivity.inputs() else { return };
        check_records(inputs.gradient_bound, inputs.n_records);
        let agree = terms.tolerance <= inputs.tolerance && terms.modulus >= inputs.modulus;
        assert!(agree, "noise and terms agree");
    };
    let check_objective = |inputs: &ObjectiveInputs, least_modulus: f64| {
        check_records(inputs.gradient_bound, inputs.n_records);
        let curvature = problem.loss.curvature_bound().expect("objective perturbation needs a smooth loss");
        assert!(curvature * row * row <= inputs.curvature_bound, "the terms are those of this loss");
        assert!(terms.modulus >= least_modulus, "noise and terms agree");
    };
    match &terms.noise {
        None => {}
        Some(Schedule::Gaussian(schedule)) => check_output(schedule.sensitivity()),
        Some(Schedule::Pure(schedule)) => match schedule.target() {
            PureTarget::Output(sensitivity) => check_output(*sensitivity),
            PureTarget::Objective(inputs) => {
                let least =
                    (1..=schedule.rounds()).filter_map(|r| schedule.modulus(r)).fold(f64::MAX, f64::min);
                check_objective(inputs, least);
            }
        },
        Some(Schedule::GaussianObjective(schedule)) => {
            check_objective(schedule.inputs(), schedule.modulus());
        }
    }
}

impl Agent {
    /// An agent before its first round. Its terms must be those of its problem.
    pub fn new(setup: AgentSetup, problem: LocalProblem, gate: Gate) -> Self {
        let p = problem.data.n_features();
        assert!(setup.neighbours.is_sorted_by_key(|n| n.0), "neighbours come in ascending order");
        let neighbour =
            |&(site, gossip_weight): &(usize, f64)| Neighbour { site, gossip_weight, inbox: vec![] };
        let settings = setup.plan.settings();
        let places: Vec<usize> = setup.neighbours.iter().map(|n| n.0).collect();
        let algorithm = settings.algorithm.start(&Start {
            settings,
            penalty: setup.penalty,
            site: setup.site,
            neighbours: &places,
            n_agents: setup.n_agents,
            n_features: p,
            terms: &setup.terms,
            regularizer: &problem.penalty,
        });
        check_terms(&setup.terms, &*algorithm, &problem);
        let mut agent = Agent {
            site: setup.site,
            kind: settings.algorithm,
            rounds: settings.rounds,
            turns_per_round: algorithm.turns_per_round(),
            gossip_rounds: setup.gossip_rounds,
            tolerance: setup.terms.tolerance,
            solvability: setup.terms.solvability,
            grids: grids(&setup.terms),
            neighbours: setup.neighbours.iter().map(neighbour).collect(),
            algorithm,
            problem,
            gate,
            solver: Solver::new(),
            warm_start: vec![0.0; p],
            released: Arc::new(Public::zeros(p)),
            said: None,
            heard: vec![],
            average: Public::zeros(p),
            average_weight: 0.0,
            phase: Phase::Speak(Stage::Model, 1),
            n_arrived: 0,
        };
        agent.begin(Stage::Model, 1);
        agent.advance();
        agent
    }

    /// What the agent has to do in a turn.
    fn duty(&self, stage: Stage, turn: u32) -> Duty {
        match stage {
            Stage::Model => self.algorithm.duty(turn),
            Stage::Average => Duty { speech: Speech::Derived, ..Duty::BROADCAST },
        }
    }

    /// The round that a turn of the algorithm belongs to.
    fn round_of(&self, turn: u32) -> u32 {
        (turn - 1) / self.turns_per_round + 1
    }

    /// The message that the agent owes its neighbours, if it owes one. This is where a round is computed.
    ///
    /// After an error the agent stays where it is; the gate does not release the round a second time.
    pub fn poll_message(&mut self) -> Result<Option<Outgoing>, AgentError> {
        let Phase::Speak(stage, turn) = self.phase else { return Ok(None) };
        let duty = self.duty(stage, turn);
        let content = match (stage, duty.speech) {
            (Stage::Average, _) => Content::Average(self.average.clone()),
            (Stage::Model, Speech::Release) => {
                let round = self.round_of(turn);
                self.solver.judgement = self.judge(round)?;
                let Agent { gate, algorithm, problem, solver, warm_start, tolerance, .. } = self;
                let release = gate.release(round, |drawn| {
                    let local = Local { problem, solver, warm_start, tolerance: *tolerance };
                    algorithm.compute(round, drawn, local)
                })?;
                self.released = Arc::new(Public::from(&release));
                self.said = Some(Arc::clone(&self.released));
                Content::Model(release)
            }
            (Stage::Model, _) => {
                let derived = self.algorithm.derive(turn);
                self.said = Some(Arc::new(derived.clone()));
                Content::Derived(derived)
            }
        };
        let to = match duty.to {
            Peers::All => Some(Recipients::Neighbours),
            Peers::Only(slot) => Some(Recipients::Site(self.neighbours[slot].site)),
            Peers::Nobody => None,
        };
        self.phase = Phase::Listen(stage, turn);
        self.advance();
        match to {
            Some(to) => Ok(Some(Outgoing { from: self.site, turn, to, content })),
            // What was released for nobody has gone into the agent's state; what follows from it may be owed by now.
            None => self.poll_message(),
        }
    }

    /// Whether the round may be charged, by public numbers alone: what is said here, any records would have got said.
    fn judge(&mut self, round: u32) -> Result<Option<Judgement>, AgentError> {
        let Some(Solvability { bounds, stopping, .. }) = self.solvability else { return Ok(None) };
        let demand = self.algorithm.demand(round).expect("an exact algorithm says what its rounds ask for");
        let judgement = bounds.judge(demand);
        let Judgement { radius, ratio, .. } = judgement;
        // Half of the integers that a grid holds are left for the noise, which never needs as many.
        let fits =
            self.grids.get(round as usize - 1).is_none_or(|&g| radius <= LARGEST_ON_GRID * 2f64.powi(g));
        if fits && bounds.allows(&judgement, stopping) {
            Ok(Some(judgement))
        } else {
            Err(AgentError::TooLarge { round, radius, ratio })
        }
    }

    /// Takes in a neighbour's message. One that was taken in before is passed over; any other that does not belong here
    /// is an error and changes nothing.
    pub fn handle_message(&mut self, message: &Incoming) -> Result<(), AgentError> {
        let Incoming { from, stage, turn, .. } = *message;
        let site = self.site;
        let Ok(slot) = self.neighbours.binary_search_by_key(&from, |n| n.site) else {
            return Err(AgentError::NotANeighbour { site, from });
        };
        let neighbour = &self.neighbours[slot];
        let (found, expected) = (message.vector.len(), self.released.len());
        if found != expected {
            return Err(AgentError::WrongLength { from, found, expected });
        }
        let limit = self.solvability.filter(|_| stage == Stage::Model).map(|s| s.message_limit);
        let length = norm_up(message.vector.as_slice());
        if let Some(limit) = limit.filter(|&limit| length.is_nan() || length > limit) {
            return Err(AgentError::TooLong { from, length, limit });
        }
        let current = match self.phase {
            Phase::Speak(s, t) | Phase::Listen(s, t) => (s, t),
            Phase::Done => return Ok(()),
        };
        if (stage, turn) < current || neighbour.inbox.iter().any(|m| (m.stage, m.turn) == (stage, turn)) {
            return Ok(());
        }
        if (stage, turn) != current && Some((stage, turn)) != self.following(current) {
            return Err(AgentError::WrongTurn { site, from, turn, current: current.1 });
        }
        self.neighbours[slot].inbox.push(message.clone());
        if (stage, turn) == current && self.awaited(stage, turn).contains(&slot) {
            self.n_arrived += 1;
        }
        self.advance();
        Ok(())
    }

    /// Goes on without a neighbour, exactly: its edge's dual leaves `α_i`, and the rest of the run is that of the
    /// graph without the edge. The noise stays what it was charged as.
    ///
    /// Panics for an algorithm that needs all its neighbours ([`AlgorithmKind::survives_loss`]).
    pub fn drop_neighbour(&mut self, site: usize) {
        assert!(self.kind.survives_loss(), "{} cannot go on without a site", self.kind.title());
        if let Some(slot) = self.neighbours.iter().position(|n| n.site == site) {
            self.neighbours.remove(slot);
            self.algorithm.drop_edge(slot);
            self.count_arrived();
            self.advance();
        }
    }

    /// The stage and turn after `(stage, turn)`.
    fn following(&self, (stage, turn): (Stage, u32)) -> Option<(Stage, u32)> {
        match stage {
            Stage::Model if turn < self.rounds * self.turns_per_round => Some((Stage::Model, turn + 1)),
            Stage::Model if self.gossip_rounds > 0 => Some((Stage::Average, 1)),
            Stage::Average if turn < self.gossip_rounds => Some((Stage::Average, turn + 1)),
            _ => None,
        }
    }

    /// Places of the neighbours that this turn waits for.
    fn awaited(&self, stage: Stage, turn: u32) -> Range<usize> {
        match self.duty(stage, turn).hears {
            Peers::All => 0..self.neighbours.len(),
            Peers::Only(slot) => slot..slot + 1,
            Peers::Nobody => 0..0,
        }
    }

    /// Begins a turn: to speak, or at once to listen.
    fn begin(&mut self, stage: Stage, turn: u32) {
        self.said = None;
        // What came for a turn that waited for somebody else is never used.
        self.neighbours.iter_mut().for_each(|n| n.inbox.retain(|m| (m.stage, m.turn) >= (stage, turn)));
        self.phase = match self.duty(stage, turn).speech {
            Speech::Silence => Phase::Listen(stage, turn),
            Speech::Release | Speech::Derived => Phase::Speak(stage, turn),
        };
        self.count_arrived();
    }

    /// Concludes the turns that are being listened to, once everybody that they wait for has been heard.
    fn advance(&mut self) {
        while let Phase::Listen(stage, turn) = self.phase {
            let awaited = self.awaited(stage, turn);
            if self.n_arrived < awaited.len() {
                return;
            }
            let here = |n: &Neighbour| n.inbox.iter().position(|m| (m.stage, m.turn) == (stage, turn));
            for neighbour in &mut self.neighbours[awaited] {
                let place = here(neighbour).expect("everybody that is waited for has been heard");
                self.heard.push(neighbour.inbox.swap_remove(place).vector);
            }
            match stage {
                Stage::Model => {
                    self.algorithm.conclude(turn, self.said.as_deref(), &self.heard);
                    if turn % self.turns_per_round == 0 {
                        self.finish_round(self.round_of(turn));
                    }
                }
                Stage::Average => {
                    let weights = self.neighbours.iter().map(|n| n.gossip_weight);
                    let weighted: Vec<(f64, &Public)> =
                        weights.zip(self.heard.iter().map(|o| &**o)).collect();
                    self.average = step::gossip(&self.average, &weighted);
                }
            }
            self.heard.clear();
            match self.following((stage, turn)) {
                Some((stage, turn)) => self.begin(stage, turn),
                None => self.phase = Phase::Done,
            }
        }
    }

    /// A round is over: its model enters the average, and a round without a release is passed by the gate.
    fn finish_round(&mut self, round: u32) {
        let weight = step::smoothing_weight(round);
        self.average.add_scaled(weight, self.algorithm.model());
        self.average_weight += weight;
        if round == self.rounds {
            self.average.scale(1.0 / self.average_weight);
        }
        if self.gate.next_round() == round {
            self.gate.pass(round).expect("the gate's next round is this one");
        }
    }

    /// Counts anew after the turn, the neighbours or what they said have changed.
    fn count_arrived(&mut self) {
        let (Phase::Speak(stage, turn) | Phase::Listen(stage, turn)) = self.phase else { return };
        let is_here = |n: &&Neighbour| n.inbox.iter().any(|m| (m.stage, m.turn) == (stage, turn));
        self.n_arrived = self.neighbours[self.awaited(stage, turn)].iter().filter(is_here).count();
    }

    /// Where the agent is: stage, turn, and whether it owes its own message of that turn; none once its run is over.
    pub fn place(&self) -> Option<(Stage, u32, bool)> {
        match self.phase {
            Phase::Speak(stage, turn) => Some((stage, turn, true)),
            Phase::Listen(stage, turn) => Some((stage, turn, false)),
            Phase::Done => None,
        }
    }

    /// The round that a turn of the algorithm's own stage belongs to.
    pub fn round_at(&self, turn: u32) -> u32 {
        self.round_of(turn)
    }

    /// Rounds of the algorithm that are over.
    pub fn rounds_done(&self) -> u32 {
        match self.phase {
            Phase::Speak(Stage::Model, turn) | Phase::Listen(Stage::Model, turn) => self.round_of(turn) - 1,
            _ => self.rounds,
        }
    }

    /// The models, once the run is over.
    pub fn outcome(&self) -> Option<Outcome> {
        (self.phase == Phase::Done)
            .then(|| Outcome { last: self.model().clone(), smoothed: self.average.clone() })
    }

    /// `x̃_i`, what the agent last said through the gate.
    pub fn released(&self) -> &Public {
        &self.released
    }

    /// The model that the agent has after the rounds so far.
    pub fn model(&self) -> &Public {
        self.algorithm.model()
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
