//! What a run guarantees, as numbers and in words.

use serde::{Deserialize, Serialize};

use crate::budget::Adjacency;
use crate::promise::{Promise, Stopping};
use crate::sensitivity::SensitivityBasis;
use crate::words::{epsilon_text, pair_text};

/// How the exact epsilon was computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ExactMethod {
    /// Exact composition of Gaussian noise, the discreteness slack taken off delta.
    Gdp,
    /// zCDP at the optimal order: for epsilons so large that no grid makes the slack small.
    ZcdpOptimal,
    /// Optimal composition of pure mechanisms, or a simpler rule where that is smaller.
    OptimalComposition,
    /// Renyi divergences at the best order.
    Rdp,
}

/// The epsilon of one list of pure mechanisms by every rule, all rounded up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Compositions {
    /// The sum; holds at delta = 0.
    pub basic: f64,
    /// By zCDP and the paper's conversion.
    pub zcdp: f64,
    /// By Renyi divergences, at the best order.
    pub rdp: f64,
    /// By the optimal composition theorem for pure mechanisms.
    pub exact: f64,
}

/// Epsilon spent so far, by both conversions, rounded up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SpentEpsilon {
    /// The best valid epsilon at the schedule's delta.
    pub exact: f64,
    /// By the paper's conversion, or for pure mechanisms their sum.
    pub paper: f64,
}

/// The guarantee of one site's whole run. All epsilons are rounded up.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PrivacyReport {
    /// Which change to a site's records the guarantee hides.
    pub adjacency: Adjacency,
    /// Epsilon at `delta` by `exact_method`; this is the guarantee.
    pub epsilon_exact: f64,
    /// The theorem behind `epsilon_exact`.
    pub exact_method: ExactMethod,
    /// For comparison with publications: epsilon at `delta` by the paper's conversion; for pure mechanisms, whose publications add up
    /// epsilons, that sum (it holds at delta = 0).
    pub epsilon_paper: f64,
    /// For the whole run, `delta_slack` included.
    pub delta: f64,
    /// The part of `delta` that pays for the noise being discrete; already taken off before `epsilon_exact`.
    pub delta_slack: f64,
    /// Sum of all charges in zCDP.
    pub rho_total: f64,
    /// `sqrt(2 rho_total)`; a parameter of Gaussian differential privacy only where the noise is Gaussian and on the output.
    pub mu: f64,
    /// Standard deviation of a coordinate of the first round's noise.
    pub noise_std_first: f64,
    /// Standard deviation of a coordinate of the last round's noise.
    pub noise_std_last: f64,
    /// First round's noise in units of the sensitivity: `noise_std_first / sensitivity`.
    pub noise_multiplier_first: f64,
    /// Last round's noise in units of the sensitivity: `noise_std_last / sensitivity`.
    pub noise_multiplier_last: f64,
    /// L2 sensitivity of one release, the grid's share included; for noise on the objective, how far a record moves the gradient.
    pub sensitivity: f64,
    /// Whether `sensitivity` is derived for one record or taken from the paper.
    pub sensitivity_basis: SensitivityBasis,
    /// How many bits finer than the noise the release grid is; 0 where the grid follows the solver's tolerance.
    pub grid_bits: u32,
    /// Rounds that the guarantee covers, free ones included.
    pub rounds: u32,
    /// Those of them that use data; the others cost nothing.
    pub rounds_charged: u32,
    /// Variance decay per round; 1 where the noise is not of that form.
    pub decay: f64,
    /// Epsilon by every composition theorem; for pure mechanisms only.
    pub compositions: Option<Compositions>,
    /// Whether the guarantee covers finite precision (see [`crate::Mechanism::is_exact`]).
    pub noise_is_exact: bool,
    /// What decides whether the site stops, which is a condition of the guarantee.
    pub stopping: Stopping,
}

impl PrivacyReport {
    /// What is promised; `None` where no guarantee is stated.
    fn promise(&self) -> Option<Promise> {
        (self.sensitivity_basis != SensitivityBasis::Paper).then(|| Promise {
            subject: format!("Everything that this site sends in {} rounds, taken together,", self.rounds),
            epsilon: self.epsilon_exact,
            delta: self.delta,
            pure_epsilon: self.compositions.as_ref().map(|all| all.basic),
            adjacency: self.adjacency,
            stopping: self.stopping,
            noise_is_exact: self.noise_is_exact,
        })
    }

    /// The guarantee in plain words, for a data-protection officer: one paragraph.
    pub fn statement(&self) -> String {
        let Some(promise) = self.promise() else {
            return format!(
                "NO GUARANTEE IS STATED. The noise of these {} rounds was scaled by {}, which is not a proved bound for the \
                 influence of one record. If it were one, the run would satisfy {}-differential privacy. Do not use this \
                 setting on real data.",
                self.rounds,
                self.sensitivity_basis,
                pair_text(self.epsilon_exact, self.delta),
            );
        };
        let free = match self.rounds - self.rounds_charged {
            0 => String::new(),
            free => format!(" In {free} of the rounds it uses no data."),
        };
        let other = match self.exact_method {
            ExactMethod::Gdp | ExactMethod::ZcdpOptimal => format!(
                " By the paper's looser conversion the same noise would be reported as epsilon = {}.",
                epsilon_text(self.epsilon_paper),
            ),
            ExactMethod::OptimalComposition => String::new(),
            ExactMethod::Rdp => format!(
                " Epsilon was found by Renyi divergences at the best order; by zCDP it would be {}.",
                epsilon_text(self.epsilon_paper),
            ),
        };
        format!("{}{free}{other}", promise.statement())
    }
}
