//! What is promised, in words, written once. Every command, file and page that says it uses these sentences.

use serde::{Deserialize, Serialize};
use std::fmt;

use crate::budget::Adjacency;
use crate::words::{best_guess, delta_text, factor_text, pair_text, percent_text};

/// What decides whether a site stops in the middle of a run, which others see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stopping {
    /// Public numbers decide, before anything is computed from records.
    Public,
    /// A round fails if the local solver does not reach its tolerance, and that may depend on records.
    #[default]
    SolverMayStall,
}

impl fmt::Display for Stopping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Public => "Whether the site stops or continues is decided from public numbers alone.",
            Self::SolverMayStall => {
                "Whether a round fails because the local solver does not reach its tolerance can depend on records and is not \
                 covered."
            }
        })
    }
}

/// A promise of differential privacy, with all that a reader must know to rely on it.
#[derive(Debug, Clone, PartialEq)]
pub struct Promise {
    /// What it is about, as the beginning of a sentence that "satisfies" continues: "Everything that this site sends in 50 rounds, taken
    /// together,".
    pub subject: String,
    /// An upper bound: already rounded up, and valid at `delta`.
    pub epsilon: f64,
    /// Holds together with `epsilon`, for the subject as a whole.
    pub delta: f64,
    /// An epsilon that holds at a delta of zero, where there is one.
    pub pure_epsilon: Option<f64>,
    /// Which change to a site's records the promise hides.
    pub adjacency: Adjacency,
    /// What decides whether the site stops.
    pub stopping: Stopping,
    /// Whether the promise covers finite precision.
    pub noise_is_exact: bool,
}

impl Promise {
    /// The promise of a real site: exact noise.
    pub fn new(subject: impl Into<String>, epsilon: f64, delta: f64, stopping: Stopping) -> Self {
        Self {
            subject: subject.into(),
            epsilon,
            delta,
            pure_epsilon: None,
            adjacency: Adjacency::default(),
            stopping,
            noise_is_exact: true,
        }
    }

    /// The whole promise, for a data protection officer: one paragraph.
    pub fn statement(&self) -> String {
        let Self { subject, epsilon, delta, adjacency, .. } = self;
        let pair = pair_text(*epsilon, *delta);
        let pure = self.pure_epsilon.map_or(String::new(), |pure| {
            format!(", and {}-differential privacy by adding up the rounds,", pair_text(pure, 0.0))
        });
        format!(
            "{subject} satisfies {pair}-differential privacy{pure} for the change \"{adjacency}\". Whatever anybody knows and \
             computes, that change alters the probability of any conclusion by a factor of at most e^ε = {}, apart from a \
             probability of {}. Whoever sees all messages, knows every other record and tries to tell whether a given record or a \
             different one was used is right at most {} of the time, where guessing is right 50 % of the time. {} A person with \
             several records, or with records at several sites, is protected less: ask for the group bound (padmm account \
             --group-records, --group-sites). {}",
            factor_text(*epsilon),
            delta_text(*delta),
            percent_text(best_guess(*epsilon, *delta)),
            adjacency.explanation(),
            self.conditions(),
        )
    }

    /// Under which conditions it holds, and what it does not cover.
    pub fn conditions(&self) -> String {
        let noise = if self.noise_is_exact {
            "The promise holds if the site runs the program as it is shipped, with exact noise."
        } else {
            "THIS HOLDS IN EXACT ARITHMETIC ONLY: the noise is made of floating-point numbers and the local problem is solved \
             up to a tolerance, which the guarantee does not cover. Use this method for comparison in simulation, not on real \
             data."
        };
        format!(
            "{noise} {} How long computations take is not covered, and neither is anybody with access to the site's machine.",
            self.stopping
        )
    }
}
