//! What an algorithm says of itself: its name, what it needs and guarantees, where it may run, and how its agents are calibrated and
//! started. One value for each algorithm, in the algorithm's own file.

use std::fmt;

use padmm_privacy::PrivacyError;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{ALL, Algorithm, SharedWork};
use crate::calibration::{CalibrationInputs, NetworkFacts, SiteCalibration};
use crate::data::FeatureSpace;
use crate::graph::Graph;
use crate::plan::{OwnSetting, PlanDraft};
use crate::regularizer::RegularizerTerm;
use crate::solvable::Demand;

/// An algorithm, for a plan: implement it beside [`Algorithm`], and add the value to one list.
///
/// ```
/// use padmm_core::algorithm::{AlgorithmKind, P_ADMM};
///
/// assert_eq!(P_ADMM.name(), "p-admm");
/// assert!(P_ADMM.runs_between_sites());
/// assert_eq!(AlgorithmKind::named("p-admm", &padmm_core::algorithm::ALL), Some(P_ADMM));
/// ```
pub trait AlgorithmSpec: fmt::Debug + Sync {
    /// Name, requirements, guarantee and settings, all known before there is a plan.
    fn describe(&self) -> &'static Description;

    /// Noise, charge and tolerance of one site, from public facts.
    fn calibrate(&self, site: &CalibrationInputs<'_>) -> Result<SiteCalibration, PrivacyError>;

    /// The state of one agent before its first round.
    fn start(&self, inputs: &AlgorithmInputs<'_>) -> Box<dyn Algorithm>;

    /// What a round asks for when all models that it is computed from have the length `size`, and the duals that of `2ηd` times
    /// `walk`. Every algorithm with a guarantee for the bytes that leave has one.
    fn demand(
        &self,
        _site: &CalibrationInputs<'_>,
        _calibration: &SiteCalibration,
        _size: f64,
        _walk: f64,
    ) -> Option<Demand> {
        None
    }

    /// Who hears what an agent releases.
    fn audience(&self) -> Audience {
        Audience::Neighbours
    }

    /// How many rounds a run has if its plan does not say, where the algorithm has a rule of its own for that.
    fn rounds_by_rule(&self, _plan: &PlanDraft, _network: &NetworkFacts<'_>) -> Option<u32> {
        None
    }

    /// Whether [`AlgorithmSpec::rounds_by_rule`] has an answer.
    fn has_rule_for_rounds(&self) -> bool {
        false
    }

    /// The fewest rounds that a plan may ask for, and the same in words, for the error.
    fn fewest_rounds(&self) -> (u32, &'static str) {
        (1, if self.has_rule_for_rounds() { "at least 1; 0 lets the rule choose" } else { "at least 1" })
    }

    /// Whether rounds solve, and so must be judged by public numbers before they are charged. Where everybody hears everything, sites
    /// send sums over their records, and a sum cannot fail.
    fn solves(&self) -> bool {
        self.audience() == Audience::Neighbours
    }

    /// Whether a site keeps the average over rounds and sites, which makes up for noise that differs between them. Where everybody hears
    /// everything, all have the same model, and keep the last.
    fn is_averaged(&self) -> bool {
        self.audience() == Audience::Neighbours
    }

    /// Of `rounds` rounds, those that an agent is charged for.
    fn charged_rounds(&self, rounds: u32) -> u32 {
        rounds
    }

    /// The regulariser's part of the problems that are solved at a site; none where it is applied elsewhere.
    fn local_regularizer(&self, regularizer: RegularizerTerm) -> RegularizerTerm {
        regularizer
    }

    /// How much longer one release's noise is than P-ADMM's at the same sensitivity and total budget, which is worth `mu`.
    fn relative_noise(
        &self,
        _plan: &crate::plan::Plan,
        _n_features: usize,
        _mu: f64,
    ) -> Result<f64, PrivacyError> {
        Ok(1.0)
    }
}

/// What is fixed about an algorithm.
#[derive(Debug)]
pub struct Description {
    /// On the command line, in plans and in records.
    pub name: &'static str,
    /// What headings and legends call it.
    pub title: &'static str,
    /// Who published it, and when.
    pub reference: &'static str,
    /// What it does, in a sentence.
    pub summary: &'static str,
    /// What it asks of the problem.
    pub needs: Needs,
    /// What it asks of the graph.
    pub graph: GraphNeeded,
    /// What it promises, and how its noise is made.
    pub guarantee: Guarantee,
    /// Of the settings that all algorithms share, those that matter to few of them and to this one.
    pub uses: &'static [&'static str],
    /// Settings that no other algorithm, or only a relative, has.
    pub own: &'static [OwnSetting],
    /// Whether sites on machines of their own can run it between them; everything else is for simulation. This is the one rule: a plan
    /// for sites is refused where it is made, and wherever it is read.
    ///
    /// The guarantee must hold for the bytes that leave. The envelope of a release has the round for its turn, so a round must be one
    /// turn in which every site speaks: no server, no token. And what sites agreed to must survive the loss of one of them.
    pub between_sites: bool,
    /// Whether a run can continue without a neighbour.
    pub survives_loss: bool,
}

impl Description {
    /// The names of its settings beyond those that every algorithm has.
    pub fn settings(&self) -> impl Iterator<Item = &'static str> {
        self.uses.iter().copied().chain(self.own.iter().map(|own| own.name))
    }
}

/// What an algorithm asks of loss and regulariser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Any loss with a bounded slope, any regulariser.
    Nothing,
    /// A twice differentiable loss (logistic) and a differentiable regulariser (none or l2).
    TwiceDifferentiable,
    /// A loss with bounded curvature, which the hinge has not.
    SmoothLoss,
    /// A regulariser that is a sum over coordinates.
    SeparableRegularizer,
    /// Both: a loss with bounded curvature, and a regulariser that is a sum over coordinates.
    SmoothLossSeparableRegularizer,
}

/// What an algorithm asks of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphNeeded {
    /// Any connected graph will do.
    Any,
    /// A star, whose middle (the first site) is the server.
    Star,
    /// An edge between any two sites.
    Complete,
}

impl GraphNeeded {
    /// As a graph is written in a plan; none if any will do.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Any => None,
            Self::Star => Some("star"),
            Self::Complete => Some("complete"),
        }
    }

    /// Whether `graph` is such a graph.
    pub fn fits(self, graph: &Graph) -> bool {
        let n = graph.n_agents();
        match self {
            Self::Any => true,
            Self::Star => n >= 2 && graph.degree(0) == n - 1 && graph.n_edges() == n - 1,
            Self::Complete => n >= 2 && graph.n_edges() == n * (n - 1) / 2,
        }
    }
}

/// Who hears what an agent releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Its neighbours in the graph.
    Neighbours,
    /// All sites: what an agent releases is passed on along the graph.
    Everybody,
}

/// What an algorithm guarantees, and how its noise is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarantee {
    /// No privacy at all: nothing is added to what leaves.
    Nothing,
    /// Composed Gaussian noise, drawn exactly on a grid: holds for the bytes that leave.
    ExactGaussian,
    /// Pure differential privacy of every charged round, added up by the best rule; floating-point noise.
    Pure,
    /// Rényi differential privacy by an argument of our own; floating-point noise.
    Experimental,
}

/// Which algorithm a plan runs. Written as its name; read back, it is one of those in [`ALL`], since nothing else can run at a
/// site. Programs that know more algorithms look their names up in a longer list, by [`AlgorithmKind::named`].
#[derive(Clone, Copy, Debug)]
pub struct AlgorithmKind(&'static dyn AlgorithmSpec);

impl AlgorithmKind {
    /// Makes an algorithm known by the value that specifies it.
    pub const fn new(spec: &'static dyn AlgorithmSpec) -> Self {
        Self(spec)
    }

    /// The one of `known` that has this name.
    pub fn named(name: &str, known: &[Self]) -> Option<Self> {
        known.iter().copied().find(|kind| kind.name() == name)
    }

    /// How it is calibrated and started.
    pub fn spec(self) -> &'static dyn AlgorithmSpec {
        self.0
    }

    /// Everything about it that is known before there is a plan.
    pub fn describe(self) -> &'static Description {
        self.0.describe()
    }

    /// The name on the command line and in records.
    pub fn name(self) -> &'static str {
        self.describe().name
    }

    /// The name in headings and legends.
    pub fn title(self) -> &'static str {
        self.describe().title
    }

    /// Whether what it releases is protected.
    pub fn is_private(self) -> bool {
        self.describe().guarantee != Guarantee::Nothing
    }

    /// Whether its guarantee holds for the very bytes that leave.
    pub fn is_exact(self) -> bool {
        self.describe().guarantee == Guarantee::ExactGaussian
    }

    /// Whether the paper's own sensitivity can be asked for.
    pub fn is_the_papers(self) -> bool {
        self.describe().uses.contains(&"sensitivity")
    }

    /// Whether a run can continue without a neighbour ([`Description::survives_loss`]).
    pub fn survives_loss(self) -> bool {
        self.describe().survives_loss
    }

    /// Whether sites on machines of their own can run it ([`Description::between_sites`]).
    pub fn runs_between_sites(self) -> bool {
        self.describe().between_sites
    }

    /// The names of those that run between sites, as words: "p-admm or consensus-newton or private-gradient or linearized".
    pub fn names_between_sites() -> String {
        let names = ALL.iter().filter(|kind| kind.runs_between_sites()).map(|kind| kind.name());
        names.collect::<Vec<_>>().join(" or ")
    }

    /// Whether every agent talks to all its neighbours, on whatever graph: the family of the paper's comparison.
    pub fn is_decentralized(self) -> bool {
        self.survives_loss()
    }

    /// The graph that it cannot do without, as it is written in a plan; none if any will do.
    pub fn graph_needed(self) -> Option<&'static str> {
        self.describe().graph.name()
    }

    /// Whether it can run on `graph`.
    pub fn fits(self, graph: &Graph) -> bool {
        self.describe().graph.fits(graph)
    }
}

impl<S: AlgorithmSpec> From<&'static S> for AlgorithmKind {
    fn from(spec: &'static S) -> Self {
        Self(spec)
    }
}

impl PartialEq for AlgorithmKind {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for AlgorithmKind {}

impl Serialize for AlgorithmKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for AlgorithmKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::named(&name, &ALL).ok_or_else(|| {
            let known: Vec<&str> = ALL.iter().map(|kind| kind.name()).collect();
            serde::de::Error::custom(format!(
                "{name:?} is not an algorithm with a guarantee for the bytes that leave; those are {}",
                known.join(", ")
            ))
        })
    }
}

/// What an algorithm starts from; all of it public.
pub struct AlgorithmInputs<'a> {
    /// The plan's settings, checked.
    pub settings: &'a PlanDraft,
    /// `η`, given by the plan or derived.
    pub penalty: f64,
    /// The agent's place in the plan's list of sites.
    pub site: usize,
    /// Places of its neighbours, ascending.
    pub neighbours: &'a [usize],
    /// `N`: how many agents the run has.
    pub n_agents: usize,
    /// `p`: how many coefficients a model has.
    pub n_features: usize,
    /// `n_j` of every site, in the plan's order.
    pub n_records: &'a [usize],
    /// The encoded columns.
    pub space: &'a FeatureSpace,
    /// `S`: no row is longer.
    pub norm_bound: f64,
    /// What the agent is held to.
    pub calibration: &'a SiteCalibration,
    /// `R/N`: this site's share of the regulariser.
    pub regularizer: &'a RegularizerTerm,
    /// Computations that agents of the same run do once.
    pub shared: &'a SharedWork,
}

impl AlgorithmInputs<'_> {
    /// `d_i`: how many neighbours the agent has.
    pub fn degree(&self) -> usize {
        self.neighbours.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_between_sites_is_exact_and_survives_the_loss_of_a_site() {
        for kind in ALL.into_iter().filter(|kind| kind.runs_between_sites()) {
            assert!(kind.is_exact() && kind.survives_loss(), "{}", kind.name());
            assert_eq!(kind.describe().graph, GraphNeeded::Any, "{}", kind.name());
        }
        assert_eq!(
            AlgorithmKind::names_between_sites(),
            "p-admm or consensus-newton or private-gradient or linearized"
        );
    }
}
