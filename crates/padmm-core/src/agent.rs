//! One site's side of a run, as a machine without I/O: messages go in through `handle_message`, messages and results
//! come out of `poll_message` and `outcome`. The simulator and the network drive this same code.

mod averaging;
mod error;
mod setup;

use std::ops::Range;
use std::sync::Arc;

use padmm_privacy::{Debit, Gate, PrivacyReport, PublicVector};

use crate::algorithm::{
    Algorithm, AlgorithmInputs, AlgorithmKind, Audience, Emission, Local, LocalProblem, Peers, TurnAction,
};
use crate::calibration::Solvability;
use crate::message::{Content, Incoming, Outgoing, Recipients, SiteIndex, Stage, StateDigest, Turn};
use crate::privacy_noise::PrivacyNoise;
use crate::regularizer::norm_up;
use crate::solvable::Judgement;
use crate::solver::Solver;
use crate::step;

use averaging::Averaging;
pub use error::AgentError;
pub use setup::AgentSetup;

/// Largest integer of a release before its noise.
const LARGEST_ON_GRID: f64 = (1u64 << 52) as f64;

/// Where an agent is in its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It owes its message of this turn.
    Sending(Turn),
    /// It has sent its message, or had none to send, and waits for those of its neighbours.
    Receiving(Turn),
    /// Its last turn is over, averaging included, and the outcome is there.
    Done,
}

impl Phase {
    /// The turn that is under way; none once the run is over.
    pub fn turn(self) -> Option<Turn> {
        match self {
            Self::Sending(turn) | Self::Receiving(turn) => Some(turn),
            Self::Done => None,
        }
    }
}

struct Neighbour {
    site: SiteIndex,
    /// Messages that are here and not used yet: of this turn, and of the next from a neighbour that is ahead.
    inbox: Vec<Incoming>,
}

/// What a site has at the end.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The paper's: the model after the last round, for most algorithms the last release.
    pub last: PublicVector,
    /// The weighted average over rounds and the mean over sites (EQUATIONS §2, "what a site keeps").
    pub smoothed: PublicVector,
    /// How far privacy noise may have moved the model, where the algorithm can tell.
    pub privacy_noise: Option<PrivacyNoise>,
}

/// One site's side of a run.
pub struct Agent {
    site: SiteIndex,
    kind: AlgorithmKind,
    rounds: u32,
    turns_per_round: u32,
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
    released: Arc<PublicVector>,
    /// What it said in this turn.
    said: Option<Arc<PublicVector>>,
    /// What it has heard in this turn; empty between turns.
    heard: Vec<Arc<PublicVector>>,
    average: PublicVector,
    average_weight: f64,
    /// Everybody's averages, where sites form their mean at the end.
    averaging: Option<Averaging>,
    phase: Phase,
    /// Neighbours that are waited for and whose message of the current stage and turn is here.
    n_arrived: usize,
    /// Who computed a release at another state than this agent, and in which turn; until somebody asks.
    elsewhere: Vec<(SiteIndex, Turn)>,
}

impl Agent {
    /// An agent before its first round. Its terms must be those of its problem.
    pub fn new(setup: AgentSetup, problem: LocalProblem, gate: Gate) -> Self {
        let p = problem.data.n_features();
        assert!(setup.neighbours.is_sorted(), "neighbours come in ascending order");
        let neighbour = |&site: &SiteIndex| Neighbour { site, inbox: vec![] };
        let settings = setup.plan.settings();
        let places: Vec<usize> = setup.neighbours.iter().map(|n| n.0).collect();
        let algorithm = settings.algorithm.spec().start(&AlgorithmInputs {
            settings,
            penalty: setup.penalty,
            site: setup.site.0,
            neighbours: &places,
            n_agents: setup.n_agents,
            n_features: p,
            n_records: &setup.n_records,
            space: &setup.space,
            norm_bound: problem.data.norm_bound(),
            calibration: &setup.calibration,
            regularizer: &problem.penalty,
            shared: &setup.shared,
        });
        let solves = settings.algorithm.spec().solves();
        setup::check_calibration(&setup.calibration, &*algorithm, solves, &problem);
        let mut agent = Self {
            site: setup.site,
            kind: settings.algorithm,
            rounds: settings.rounds,
            turns_per_round: algorithm.turns_per_round(),
            tolerance: setup.calibration.tolerance,
            solvability: setup.calibration.solvability,
            grids: setup.calibration.grids(),
            neighbours: setup.neighbours.iter().map(neighbour).collect(),
            algorithm,
            problem,
            gate,
            solver: Solver::new(),
            warm_start: vec![0.0; p],
            released: Arc::new(PublicVector::zeros(p)),
            said: None,
            heard: vec![],
            average: PublicVector::zeros(p),
            average_weight: 0.0,
            averaging: (settings.algorithm.spec().is_averaged() && setup.n_agents > 1)
                .then(|| Averaging::of(setup.n_agents)),
            phase: Phase::Sending(Turn::model(1)),
            n_arrived: 0,
            elsewhere: vec![],
        };
        agent.begin(Turn::model(1));
        agent.advance();
        agent
    }

    /// What the agent has to do in a turn.
    fn action(&self, turn: Turn) -> TurnAction {
        match turn.stage {
            Stage::Model => self.algorithm.action(turn.number),
            Stage::Average => TurnAction { emission: Emission::Derived, ..TurnAction::BROADCAST },
        }
    }

    /// The round of the algorithm that a turn belongs to; none for the averaging after the last round.
    pub fn round_of(&self, turn: Turn) -> Option<u32> {
        (turn.stage == Stage::Model).then(|| turn.number.saturating_sub(1) / self.turns_per_round + 1)
    }

    /// The message that the agent owes its neighbours, if it owes one. This is where a round is computed.
    ///
    /// After an error the agent stays where it is; the gate does not release the round a second time.
    pub fn poll_message(&mut self) -> Result<Option<Outgoing>, AgentError> {
        let Phase::Sending(turn) = self.phase else { return Ok(None) };
        let action = self.action(turn);
        let content = match (self.round_of(turn), action.emission) {
            (None, _) => {
                let own = Arc::new(self.average.clone());
                self.averaging.as_mut().expect("averages are sent where they are formed").put(self.site, own);
                Content::Average(self.average.clone())
            }
            (Some(round), Emission::Release) => {
                self.solver.judgement = self.judge(round)?;
                let Self { gate, algorithm, problem, solver, warm_start, tolerance, .. } = self;
                let release = gate.release(round, |drawn| {
                    let local = Local { problem, solver, warm_start, tolerance: *tolerance };
                    algorithm.compute(round, drawn, local)
                })?;
                self.released = Arc::new(PublicVector::from(&release));
                self.said = Some(Arc::clone(&self.released));
                Content::Model(release)
            }
            (Some(_), _) => {
                let derived = self.algorithm.derive(turn.number);
                self.said = Some(Arc::new(derived.clone()));
                Content::Derived(derived)
            }
        };
        let to = match action.to {
            Peers::All if self.is_passed_on(turn) => Some(Recipients::Everybody),
            Peers::All => Some(Recipients::Neighbours),
            Peers::Only(slot) => Some(Recipients::Site(self.neighbours[slot].site)),
            Peers::Nobody => None,
        };
        self.phase = Phase::Receiving(turn);
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
        let demand = self
            .algorithm
            .demand(round)
            .expect("an algorithm with a guarantee for the bytes that leave implements `Algorithm::demand`");
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

    /// Accepts a neighbour's message. One that was accepted before is ignored; any other that does not belong here is an
    /// error and changes nothing.
    pub fn handle_message(&mut self, message: &Incoming) -> Result<(), AgentError> {
        let Incoming { from, turn, .. } = *message;
        let site = self.site;
        if turn.stage == Stage::Average {
            return self.handle_average(message);
        }
        let Ok(slot) = self.neighbours.binary_search_by_key(&from, |n| n.site) else {
            return Err(AgentError::NotANeighbour { site, from });
        };
        let neighbour = &self.neighbours[slot];
        let (found, expected) = (message.vector.len(), self.n_coordinates(turn));
        if found != expected {
            return Err(AgentError::WrongLength { from, found, expected });
        }
        let limit = self.solvability.map(|s| s.message_limit);
        let length = norm_up(message.vector.as_slice());
        if let Some(limit) = limit.filter(|&limit| length.is_nan() || length > limit) {
            return Err(AgentError::TooLong { from, length, limit });
        }
        let Some(current) = self.phase.turn() else { return Ok(()) };
        if turn < current || neighbour.inbox.iter().any(|m| m.turn == turn) {
            return Ok(());
        }
        if turn != current && Some(turn) != self.following(current) {
            return Err(AgentError::WrongTurn { site, from, turn, current });
        }
        self.neighbours[slot].inbox.push(message.clone());
        if turn == current && self.awaited(turn).contains(&slot) {
            self.n_arrived += 1;
        }
        self.advance();
        Ok(())
    }

    /// Accepts a site's average. It may come early: whoever made it is ahead by as many turns as there are edges between.
    fn handle_average(&mut self, message: &Incoming) -> Result<(), AgentError> {
        let Incoming { from, turn, .. } = *message;
        let (found, expected) = (message.vector.len(), self.n_coordinates(turn));
        if found != expected {
            return Err(AgentError::WrongLength { from, found, expected });
        }
        let Some(current) = self.phase.turn() else { return Ok(()) };
        let site = self.site;
        match &mut self.averaging {
            Some(averaging) if turn == Turn::average(1) => {
                if from == site || !averaging.put(from, Arc::clone(&message.vector)) {
                    return Err(AgentError::NotANeighbour { site, from });
                }
                self.advance();
                Ok(())
            }
            _ => Err(AgentError::WrongTurn { site, from, turn, current }),
        }
    }

    /// Forms the mean at the end without a site, unless that site's average is here.
    pub fn leave_out(&mut self, site: SiteIndex) {
        if let Some(averaging) = self.averaging.as_mut().filter(|_| site != self.site) {
            averaging.leave_out(site);
            self.advance();
        }
    }

    /// The sites whose averages the model at the end is the mean of; none where it is no mean.
    pub fn averaged_over(&self) -> Option<Vec<SiteIndex>> {
        self.averaging.as_ref().map(|averaging| averaging.sites().collect())
    }

    /// Whether the messages of a turn are passed on from site to site until everybody has them.
    pub fn is_passed_on(&self, turn: Turn) -> bool {
        turn.stage == Stage::Average || self.audience() == Audience::Everybody
    }

    /// Continues without a neighbour, exactly: its edge's dual leaves `α_i`, and the rest of the run is that of the
    /// graph without the edge. The noise stays what it was charged as.
    ///
    /// Panics for an algorithm that needs all its neighbours ([`AlgorithmKind::survives_loss`]).
    pub fn drop_neighbour(&mut self, site: SiteIndex) {
        assert!(self.kind.survives_loss(), "{} cannot continue without a site", self.kind.title());
        if let Some(slot) = self.neighbours.iter().position(|n| n.site == site) {
            self.neighbours.remove(slot);
            self.algorithm.drop_edge(slot);
            self.count_arrived();
            self.advance();
        }
    }

    /// The turn after `turn`; none after the last of the run.
    fn following(&self, Turn { stage, number }: Turn) -> Option<Turn> {
        match stage {
            Stage::Model if number < self.rounds * self.turns_per_round => Some(Turn::model(number + 1)),
            Stage::Model => self.averaging.as_ref().map(|_| Turn::average(1)),
            Stage::Average => None,
        }
    }

    /// Places of the neighbours that this turn of the algorithm waits for.
    fn awaited(&self, turn: Turn) -> Range<usize> {
        if turn.stage == Stage::Average {
            return 0..0;
        }
        match self.action(turn).hears {
            Peers::All => 0..self.neighbours.len(),
            Peers::Only(slot) => slot..slot + 1,
            Peers::Nobody => 0..0,
        }
    }

    /// Begins a turn: with a message to send, or at once with waiting for others.
    fn begin(&mut self, turn: Turn) {
        self.said = None;
        // What came for a turn that waited for somebody else is never used.
        self.neighbours.iter_mut().for_each(|n| n.inbox.retain(|m| m.turn >= turn));
        self.phase = match self.action(turn).emission {
            Emission::Silence => Phase::Receiving(turn),
            Emission::Release | Emission::Derived => Phase::Sending(turn),
        };
        self.count_arrived();
    }

    /// Finishes turns for as long as everybody that they wait for has been heard and no message of this agent's is owed.
    fn advance(&mut self) {
        while let Phase::Receiving(turn) = self.phase {
            let Some(round) = self.round_of(turn) else {
                if let Some(mean) = self.averaging.as_ref().and_then(Averaging::mean) {
                    (self.average, self.phase) = (mean, Phase::Done);
                }
                return;
            };
            let awaited = self.awaited(turn);
            if self.n_arrived < awaited.len() {
                return;
            }
            let here = |n: &Neighbour| n.inbox.iter().position(|m| m.turn == turn);
            let state = self.state(turn);
            for neighbour in &mut self.neighbours[awaited] {
                let place = here(neighbour).expect("everybody that is waited for has been heard");
                let message = neighbour.inbox.swap_remove(place);
                let is_elsewhere = message.state.zip(state).is_some_and(|(theirs, ours)| theirs != ours);
                self.heard.push(if is_elsewhere {
                    self.elsewhere.push((neighbour.site, turn));
                    Arc::new(PublicVector::zeros(0))
                } else {
                    message.vector
                });
            }
            self.algorithm.finish_turn(turn.number, self.said.as_deref(), &self.heard);
            if turn.number.is_multiple_of(self.turns_per_round) {
                self.finish_round(round);
            }
            self.heard.clear();
            match self.following(turn) {
                Some(next) => self.begin(next),
                None => self.phase = Phase::Done,
            }
        }
    }

    /// A round is over: its model enters the average, and a round without a release is passed by the gate.
    fn finish_round(&mut self, round: u32) {
        if self.kind.spec().is_averaged() {
            let weight = step::smoothing_weight(round);
            self.average.add_scaled(weight, self.algorithm.model());
            self.average_weight += weight;
        } else {
            self.average.clone_from(self.algorithm.model());
            self.average_weight = 1.0;
        }
        if round == self.rounds {
            self.average.scale(1.0 / self.average_weight);
        }
        if self.gate.next_round() == round {
            self.gate.pass(round).expect("the gate's next round is this one");
        }
    }

    /// Counts again after the turn, the neighbours or what they sent have changed.
    fn count_arrived(&mut self) {
        let Some(turn) = self.phase.turn() else { return };
        let is_here = |n: &&Neighbour| n.inbox.iter().any(|m| m.turn == turn);
        self.n_arrived = self.neighbours[self.awaited(turn)].iter().filter(is_here).count();
    }

    /// How many numbers a message of this turn has.
    pub fn n_coordinates(&self, turn: Turn) -> usize {
        let of_turn =
            (turn.stage == Stage::Model).then(|| self.algorithm.n_coordinates(turn.number)).flatten();
        of_turn.unwrap_or(self.model().len())
    }

    /// The public state that the release of `turn`, which is under way, is computed at; none where agents compute each at their own.
    pub fn state(&self, turn: Turn) -> Option<StateDigest> {
        self.algorithm.state().filter(|_| turn.stage == Stage::Model)
    }

    /// Those whose releases were left out since the last time, because they were computed at another state than this agent's.
    pub fn take_elsewhere(&mut self) -> Vec<(SiteIndex, Turn)> {
        std::mem::take(&mut self.elsewhere)
    }

    /// Whose releases it hears.
    pub fn audience(&self) -> Audience {
        self.kind.spec().audience()
    }

    /// Where the agent is in its run: which turn, and whether it sends or receives.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Rounds of the algorithm that are over.
    pub fn rounds_done(&self) -> u32 {
        let round = self.phase.turn().and_then(|turn| self.round_of(turn));
        round.map_or(self.rounds, |round| round - 1)
    }

    /// The models, once the run is over.
    pub fn outcome(&self) -> Option<Outcome> {
        (self.phase == Phase::Done).then(|| Outcome {
            last: self.model().clone(),
            smoothed: self.average.clone(),
            // A prediction that overflowed is none; the model is worth keeping all the same.
            privacy_noise: self.algorithm.privacy_noise().filter(|noise| noise.fits(self.model().len())),
        })
    }

    /// `x̃_i`, what the agent last said through the gate.
    pub fn released(&self) -> &PublicVector {
        &self.released
    }

    /// The model that the agent has after the rounds so far.
    pub fn model(&self) -> &PublicVector {
        self.algorithm.model()
    }

    /// The agent's own average over the rounds so far: what it would keep by itself if the run stopped here.
    pub fn smoothed_so_far(&self) -> PublicVector {
        let mut average = self.average.clone();
        if self.phase.turn().is_some_and(|turn| turn.stage == Stage::Model) {
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

    /// Every charge that the gate's ledger holds, oldest first.
    pub fn debits(&self) -> &[Debit] {
        self.gate.debits()
    }
}
