//! The list of algorithms: names, what each needs and gives, and the way to each one's file.

use padmm_privacy::PrivacyError;
use serde::{Deserialize, Serialize};

use super::{
    Algorithm, DpAdmm, LinearizedAdmm, RecycledAdmm, TokenAdmm, dp_admm, dvp, gaussian_objective, linearized,
    m_admm, padmm, pvp, r_admm, token,
};
use crate::graph::Graph;
use crate::plan::PlanDraft;
use crate::regularizer::Penalty;
use crate::solvable::Demand;
use crate::step;
use crate::terms::{AgentTerms, SiteFacts};

/// Which algorithm a plan runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AlgorithmKind {
    /// The paper's algorithm: Gaussian noise of decaying variance on every release.
    PAdmm,
    /// The same without noise and without any privacy: the reference.
    Admm,
    /// Dual variable perturbation.
    Dvp,
    /// Primal variable perturbation.
    Pvp,
    /// Penalty perturbation with growing penalties.
    MAdmm,
    /// Recycled ADMM.
    RAdmm,
    /// Recycled ADMM with growing penalties.
    MrAdmm,
    /// Linearised ADMM with a server agent.
    DpAdmm,
    /// Linearised ADMM without a server.
    Linearized,
    /// A token walking from agent to agent.
    Token,
    /// Gaussian objective perturbation, experimental.
    GaussianObjective,
}

/// What an algorithm asks of graph and problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Any connected graph, any loss with a bounded slope, any regulariser.
    Nothing,
    /// A twice differentiable loss (logistic) and a differentiable regulariser (none or l2).
    TwiceDifferentiable,
    /// A loss with bounded curvature; a star, whose middle (the first site) is the server.
    SmoothLossAndStar,
    /// A loss with bounded curvature.
    SmoothLoss,
    /// A complete graph, and a regulariser that is a sum over coordinates.
    Complete,
}

/// What an algorithm guarantees, and how its noise is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarantee {
    /// None.
    Nothing,
    /// Composed Gaussian noise, drawn exactly on a grid: holds for the bytes that leave.
    ExactGaussian,
    /// Pure differential privacy of every charged round, added up by the best rule; floating-point noise.
    Pure,
    /// Rényi differential privacy by an argument of our own; floating-point noise.
    Experimental,
}

/// One line of the list of algorithms.
pub struct Description {
    /// Who and when.
    pub reference: &'static str,
    /// What it does, in a sentence.
    pub summary: &'static str,
    /// What it asks for.
    pub needs: Needs,
    /// What it gives.
    pub guarantee: Guarantee,
    /// Settings of its own, by their flags.
    pub settings: &'static [&'static str],
}

impl AlgorithmKind {
    /// Every algorithm, for listings and messages.
    pub const ALL: [AlgorithmKind; 11] = [
        AlgorithmKind::PAdmm,
        AlgorithmKind::Admm,
        AlgorithmKind::Dvp,
        AlgorithmKind::Pvp,
        AlgorithmKind::MAdmm,
        AlgorithmKind::RAdmm,
        AlgorithmKind::MrAdmm,
        AlgorithmKind::DpAdmm,
        AlgorithmKind::Linearized,
        AlgorithmKind::Token,
        AlgorithmKind::GaussianObjective,
    ];

    /// The name on the command line and in records.
    pub fn name(self) -> &'static str {
        match self {
            AlgorithmKind::PAdmm => "p-admm",
            AlgorithmKind::Admm => "admm",
            AlgorithmKind::Dvp => "dvp",
            AlgorithmKind::Pvp => "pvp",
            AlgorithmKind::MAdmm => "m-admm",
            AlgorithmKind::RAdmm => "r-admm",
            AlgorithmKind::MrAdmm => "mr-admm",
            AlgorithmKind::DpAdmm => "dp-admm",
            AlgorithmKind::Linearized => "linearized",
            AlgorithmKind::Token => "token",
            AlgorithmKind::GaussianObjective => "gaussian-objective",
        }
    }

    /// The name in headings and legends.
    pub fn title(self) -> &'static str {
        match self {
            AlgorithmKind::PAdmm => "P-ADMM",
            AlgorithmKind::Admm => "ADMM without privacy",
            AlgorithmKind::Dvp => "DVP",
            AlgorithmKind::Pvp => "PVP",
            AlgorithmKind::MAdmm => "M-ADMM",
            AlgorithmKind::RAdmm => "R-ADMM",
            AlgorithmKind::MrAdmm => "MR-ADMM",
            AlgorithmKind::DpAdmm => "DP-ADMM (server)",
            AlgorithmKind::Linearized => "linearised P-ADMM",
            AlgorithmKind::Token => "token ADMM",
            AlgorithmKind::GaussianObjective => "Gaussian objective perturbation",
        }
    }

    /// What it needs and gives.
    pub fn describe(self) -> Description {
        use {Guarantee as G, Needs as N};
        let of = |reference, summary, needs, guarantee, settings| Description {
            reference,
            summary,
            needs,
            guarantee,
            settings,
        };
        match self {
            AlgorithmKind::PAdmm => of(
                "Ding, Qin, Xu, Gong, Zhang, Pan",
                "local solve, Gaussian noise of decaying variance on what is sent",
                N::Nothing,
                G::ExactGaussian,
                &["--decay", "--sensitivity"],
            ),
            AlgorithmKind::Admm => {
                of("Shi et al. 2014", "decentralised ADMM, the reference", N::Nothing, G::Nothing, &[])
            }
            AlgorithmKind::Dvp => of(
                "Zhang, Zhu 2017",
                "gamma-norm noise on the dual inside the local problem",
                N::TwiceDifferentiable,
                G::Pure,
                &[],
            ),
            AlgorithmKind::Pvp => of(
                "Zhang, Zhu 2017",
                "gamma-norm noise on the minimiser before it is sent",
                N::Nothing,
                G::Pure,
                &[],
            ),
            AlgorithmKind::MAdmm => of(
                "Zhang, Khalili, Liu 2018",
                "DVP with penalties and noise rates that grow from round to round",
                N::TwiceDifferentiable,
                G::Pure,
                &["--penalty-growth", "--rate-growth"],
            ),
            AlgorithmKind::RAdmm => of(
                "Zhang, Khalili, Liu 2018",
                "DVP in odd rounds; even rounds recycle what was sent and cost nothing",
                N::TwiceDifferentiable,
                G::Pure,
                &["--even-damping"],
            ),
            AlgorithmKind::MrAdmm => of(
                "Zhang, Khalili, Liu 2019",
                "R-ADMM with growing penalties",
                N::TwiceDifferentiable,
                G::Pure,
                &["--even-damping", "--penalty-growth"],
            ),
            AlgorithmKind::DpAdmm => of(
                "Huang et al. 2019",
                "linearised steps towards a server's model, Gaussian noise",
                N::SmoothLossAndStar,
                G::ExactGaussian,
                &["--model-bound"],
            ),
            AlgorithmKind::Linearized => of(
                "after Huang et al. 2019 and Gauthier et al.",
                "P-ADMM with one gradient in place of the local solve",
                N::SmoothLoss,
                G::ExactGaussian,
                &["--decay"],
            ),
            AlgorithmKind::Token => of(
                "Cyffers, Bellet, Basu 2023, corrected",
                "a token visits one agent after the other; accounted for whoever sees all messages",
                N::Complete,
                G::ExactGaussian,
                &["--relaxation"],
            ),
            AlgorithmKind::GaussianObjective => of(
                "argument in PRIVACY.md",
                "DVP with Gaussian noise",
                N::TwiceDifferentiable,
                G::Experimental,
                &[],
            ),
        }
    }

    /// Whether what it releases is protected.
    pub fn is_private(self) -> bool {
        self != AlgorithmKind::Admm
    }

    /// Whether its guarantee holds for the very bytes that leave.
    pub fn is_exact(self) -> bool {
        self.describe().guarantee == Guarantee::ExactGaussian
    }

    /// The regulariser's part of the problems that are solved at a site: the token's side applies it elsewhere.
    pub(crate) fn local_penalty(self, regularizer: Penalty) -> Penalty {
        if self == AlgorithmKind::Token { Penalty::none() } else { regularizer }
    }

    /// What a round asks for when all models that it is computed from have the length `size`, and the duals that of
    /// `2ηd` times `walk`. Only for algorithms that are exact.
    pub(crate) fn demand(self, site: &SiteFacts<'_>, terms: &AgentTerms, size: f64, walk: f64) -> Demand {
        let solve = |quadratic: f64, times: f64| Demand::Solve {
            linear: quadratic * (times * size + walk),
            quadratic,
        };
        let pull = step::primal_quadratic(site.penalty, site.degree);
        match self {
            AlgorithmKind::PAdmm => solve(pull, 1.0),
            AlgorithmKind::Token => solve(terms.modulus, 3.0),
            AlgorithmKind::Linearized | AlgorithmKind::DpAdmm => {
                let slowest = terms.inverse_steps.last().copied().unwrap_or_default();
                let pull = if self == AlgorithmKind::DpAdmm { site.penalty } else { pull };
                Demand::Step {
                    at: size,
                    center: pull * (size + walk) + slowest * size,
                    weight: terms.modulus,
                }
            }
            _ => unreachable!("{} is not exact", self.title()),
        }
    }

    /// Of `rounds` rounds, those that an agent is charged for.
    pub fn charged_rounds(self, rounds: u32) -> u32 {
        match self {
            AlgorithmKind::Admm => 0,
            AlgorithmKind::RAdmm | AlgorithmKind::MrAdmm => rounds.div_ceil(2),
            _ => rounds,
        }
    }

    /// Whether the paper's own sensitivity can be asked for.
    pub fn is_the_papers(self) -> bool {
        self == AlgorithmKind::PAdmm
    }

    /// Whether a run can go on without a neighbour.
    pub fn survives_loss(self) -> bool {
        !matches!(self, AlgorithmKind::DpAdmm | AlgorithmKind::Token)
    }

    /// Whether sites on machines of their own can run it between them; everything else is for simulation. This is the one rule:
    /// a plan for sites is refused where it is made, and wherever it is read.
    ///
    /// The guarantee must hold for the bytes that leave. The envelope of a release has the round for its turn, so a round must be
    /// one turn in which every site speaks: no server, no token. And what sites agreed to must survive the loss of one of them.
    pub fn runs_between_sites(self) -> bool {
        matches!(self, AlgorithmKind::PAdmm | AlgorithmKind::Linearized)
    }

    /// The names of those that run between sites, as words: "p-admm or linearized".
    pub fn names_between_sites() -> String {
        let names = Self::ALL.iter().filter(|kind| kind.runs_between_sites()).map(|kind| kind.name());
        names.collect::<Vec<_>>().join(" or ")
    }

    /// Whether every agent talks to all its neighbours, on whatever graph: the family of the paper's comparison.
    pub fn is_decentralized(self) -> bool {
        self.survives_loss()
    }

    /// The graph that it cannot do without, in words; none if any will do.
    pub fn graph_needed(self) -> Option<&'static str> {
        match self.describe().needs {
            Needs::SmoothLossAndStar => Some("star"),
            Needs::Complete => Some("complete"),
            Needs::Nothing | Needs::TwiceDifferentiable | Needs::SmoothLoss => None,
        }
    }

    /// Whether it can run on `graph`.
    pub fn fits(self, graph: &Graph) -> bool {
        let n = graph.n_agents();
        match self.graph_needed() {
            Some("star") => n >= 2 && graph.degree(0) == n - 1 && graph.n_edges() == n - 1,
            Some(_) => n >= 2 && graph.n_edges() == n * (n - 1) / 2,
            None => true,
        }
    }

    /// Noise, charge and tolerance of one site.
    pub(crate) fn terms(self, site: &SiteFacts<'_>) -> Result<AgentTerms, PrivacyError> {
        match self {
            AlgorithmKind::PAdmm => padmm::terms(site),
            AlgorithmKind::Admm => Ok(padmm::plain_terms(site)),
            AlgorithmKind::Dvp => dvp::terms(site),
            AlgorithmKind::Pvp => pvp::terms(site),
            AlgorithmKind::MAdmm => m_admm::terms(site),
            AlgorithmKind::RAdmm | AlgorithmKind::MrAdmm => r_admm::terms(site),
            AlgorithmKind::DpAdmm => dp_admm::terms(site),
            AlgorithmKind::Linearized => linearized::terms(site),
            AlgorithmKind::Token => token::terms(site),
            AlgorithmKind::GaussianObjective => gaussian_objective::terms(site),
        }
    }

    /// The state of one agent before its first round.
    pub fn start(self, start: &Start<'_>) -> Box<dyn Algorithm> {
        match self {
            AlgorithmKind::PAdmm | AlgorithmKind::Admm | AlgorithmKind::Pvp => Box::new(padmm::start(start)),
            AlgorithmKind::Dvp | AlgorithmKind::GaussianObjective => Box::new(dvp::start(start)),
            AlgorithmKind::MAdmm => Box::new(m_admm::start(start)),
            AlgorithmKind::RAdmm | AlgorithmKind::MrAdmm => Box::new(RecycledAdmm::new(start)),
            AlgorithmKind::DpAdmm => Box::new(DpAdmm::new(start)),
            AlgorithmKind::Linearized => Box::new(LinearizedAdmm::new(start)),
            AlgorithmKind::Token => Box::new(TokenAdmm::new(start)),
        }
    }
}

/// What an algorithm starts from; all of it public.
pub struct Start<'a> {
    /// The plan's settings.
    pub settings: &'a PlanDraft,
    /// `η`
    pub penalty: f64,
    /// The agent's place in the plan's list of sites.
    pub site: usize,
    /// Places of its neighbours, ascending.
    pub neighbours: &'a [usize],
    /// Sites in all.
    pub n_agents: usize,
    /// Dimension of a model.
    pub n_features: usize,
    /// The agent's terms.
    pub terms: &'a AgentTerms,
    /// `R/N`
    pub regularizer: &'a Penalty,
}

impl Start<'_> {
    /// `d_i`
    pub fn degree(&self) -> usize {
        self.neighbours.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_between_sites_is_exact_and_survives_the_loss_of_a_site() {
        for kind in AlgorithmKind::ALL.into_iter().filter(|kind| kind.runs_between_sites()) {
            assert_eq!(kind.describe().guarantee, Guarantee::ExactGaussian, "{}", kind.name());
            assert!(kind.survives_loss() && kind.graph_needed().is_none(), "{}", kind.name());
        }
        assert_eq!(AlgorithmKind::names_between_sites(), "p-admm or linearized");
    }
}
