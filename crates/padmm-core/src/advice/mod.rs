//! What a plan may be expected to come to, before anybody signs it: from schema, site sizes, graph and budget alone.
//!
//! No record is needed. Records are made up (`population`) with a signal of assumed strength, or taken from a public table that the
//! caller names, and the methods are run on them with the noise of the real network (`rehearse`). All noise of consensus Newton enters
//! through `A/μ`, so its runs give one curve, from which every other network, weighting and budget is read off.
//!
//! How far predictions are from runs is measured in experiments/README.md.

#![allow(clippy::float_cmp, reason = "budgets are compared with themselves")]

mod population;
mod recommend;
mod rehearse;
mod sites;

use padmm_privacy::{Budget, PrivacyError, gdp_mu};
use rayon::prelude::*;
use serde::Serialize;

use crate::algorithm::newton::picked;
use crate::algorithm::noise_factor;
use crate::algorithm::{AlgorithmKind, CONSENSUS_NEWTON, P_ADMM, PRIVATE_GRADIENT};
use crate::calibration::{CalibrationError, NetworkFacts};
use crate::data::Dataset;
use crate::plan::{Plan, PlanDraft, PlanError, SiteWeights};
use rehearse::{Outcome, Population, admm};

pub use recommend::{NOISY, Recommended, is_mostly_noise, recommend, recommended_weights};
pub use sites::{Alternative, SiteAdvice};

/// Budgets that are compared unless others are asked for.
pub const EPSILONS: [f64; 7] = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0];

/// Where the strength of the signal comes from.
#[derive(Clone, Copy)]
pub enum Signal<'a> {
    /// Given by whoever asks, where there are no records to take it from.
    Assumed {
        /// Area under the ROC curve of the best model.
        auc: f64,
        /// Part of the records that are positive.
        positive: f64,
    },
    /// From records that are public: encoded, with labels. Never from those of a site.
    Table(&'a Dataset),
}

/// How much is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// All budgets, methods and numbers of rounds.
    Full,
    /// The plan's own budget and method only.
    Quick,
}

/// Which consortium the advice is for, and what it wants to know.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    /// Budget, loss, regulariser, weights and, for [`Effort::Quick`], the method.
    pub plan: &'a Plan,
    /// Sites, their numbers of records, the graph and the columns.
    pub network: &'a NetworkFacts<'a>,
    /// In the order of the network's sites.
    pub names: &'a [String],
    /// How strong the signal is taken to be.
    pub signal: Signal<'a>,
    /// Budgets to compare.
    pub epsilons: &'a [f64],
    /// How much area under the ROC curve privacy may cost.
    pub wanted_auc_loss: Option<f64>,
    /// How much of this is computed.
    pub effort: Effort,
}

/// Why there is no advice.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what its fields hold")]
pub enum AdviceError {
    /// A number outside its range.
    #[error("`{name}` is {value}, but it must be {rule}")]
    OutOfRange { name: &'static str, value: f64, rule: &'static str },
    /// A plan that predicts numbers.
    #[error("there is advice for two classes only: use a binary label and `loss = logistic`")]
    NotClassification,
    /// No sites, or a single one.
    #[error("{n} sites are no network: name two or more, each with its number of records")]
    TooFewSites { n: usize },
    /// A site without records.
    #[error("the site {site} has no records: leave it out, or say how many it has")]
    EmptySite { site: String },
    /// The public table is too small to learn from.
    #[error(
        "the public table has {n} usable records, and at least {needed} are needed: leave it out and assume an `auc`"
    )]
    SmallTable { n: usize, needed: usize },
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Calibration(#[from] CalibrationError),
    #[error(transparent)]
    Privacy(#[from] PrivacyError),
}

/// Runs of P-ADMM take longer the more sites there are; with fewer there are several, because they differ more, too.
const FEW_SITES: usize = 12;
/// Public tables need this many records.
const LEAST_TABLE: usize = 60;

/// What a method is expected to come to at a budget.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Expected {
    /// By its name in plans.
    pub algorithm: String,
    /// Total ε of every site.
    pub epsilon: f64,
    /// Those that use records; averaging at the end is not counted.
    pub rounds: u32,
    /// Whose records count how much.
    pub weights: SiteWeights,
    /// Mean loss of the model that sites keep, on the records that it was learned from.
    pub loss: f64,
    /// Standard deviation of `loss` over runs.
    pub std: f64,
    /// `F(x)/F(x*) − 1` of the pooled objective `F` and its minimiser `x*`.
    pub excess_objective: f64,
    /// Its standard deviation over runs.
    pub excess_objective_std: f64,
    /// Area under the ROC curve, on other records.
    pub auc: f64,
    /// Its standard deviation over runs.
    pub auc_std: f64,
    /// What privacy costs of it.
    pub auc_loss: f64,
    /// Part of other records on the right side.
    pub accuracy: f64,
}

/// What the best model without privacy is worth.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Pooled {
    /// Mean loss over the records of all sites, and the regulariser.
    pub objective: f64,
    /// Area under the ROC curve, on other records.
    pub auc: f64,
    /// Part of other records on the right side.
    pub accuracy: f64,
    /// The same for whoever always says the more common class.
    pub majority_accuracy: f64,
}

/// What a site sends and how long a run takes, for one method.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Traffic {
    /// By its name in plans.
    pub algorithm: String,
    /// Rounds, those of averaging included.
    pub rounds: u32,
    /// What the busiest site sends, at most.
    pub bytes: u64,
    /// About how long a run takes where a message and its answer take a tenth of a second.
    pub minutes: f64,
}

/// A budget that is enough.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct EpsilonNeeded {
    /// What may be lost.
    pub auc_loss: f64,
    /// The ε that is enough, with the recommended method; none if the largest that was tried is not.
    pub epsilon: Option<f64>,
}

/// What privacy is expected to cost, and what each site is expected to gain.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// What the rule on public facts picks.
    pub recommended: Recommended,
    /// Without privacy.
    pub pooled: Pooled,
    /// By method and budget.
    pub frontier: Vec<Expected>,
    /// By method and number of rounds, at the plan's budget.
    pub by_rounds: Vec<Expected>,
    /// What each site gains.
    pub sites: Vec<SiteAdvice>,
    /// What else could be done about sites that add more noise than knowledge.
    pub alternatives: Vec<Alternative>,
    /// The budget that is enough for the loss that was asked about.
    pub epsilon_needed: Option<EpsilonNeeded>,
    /// Rounds, bytes and minutes.
    pub traffic: Vec<Traffic>,
    /// What a person should think about again.
    pub warnings: Vec<String>,
}

/// Answers the question.
pub fn advise(question: &Question<'_>) -> Result<Advice, AdviceError> {
    check(question)?;
    let recommended = recommend(question.plan, question.network)?;
    let n_populations = match (question.effort, question.signal) {
        (Effort::Quick, _) => 1,
        (Effort::Full, Signal::Table(_)) => 2,
        (Effort::Full, Signal::Assumed { .. }) => 3,
    };
    let populations: Vec<Population> =
        (0..n_populations).into_par_iter().map(|k| Population::new(question, k)).collect();
    let rehearsals = Rehearsals { question, populations };
    let pooled = rehearsals.pooled();
    let plan_epsilon = question.plan.settings().epsilon;
    let mut frontier = vec![];
    let kinds: Vec<AlgorithmKind> = match question.effort {
        Effort::Quick => vec![question.plan.settings().algorithm],
        Effort::Full if recommended.kind() == P_ADMM => vec![P_ADMM],
        Effort::Full => vec![CONSENSUS_NEWTON, PRIVATE_GRADIENT, P_ADMM],
    };
    let epsilons = rehearsals.epsilons();
    for kind in &kinds {
        for &epsilon in &epsilons {
            frontier.push(rehearsals.expected(*kind, epsilon, None)?);
        }
    }
    let mut by_rounds = vec![];
    if question.effort == Effort::Full {
        for kind in &kinds {
            let rounds: &[u32] = if *kind == CONSENSUS_NEWTON {
                &[3, 5, 9, 17, 25]
            } else if *kind == PRIVATE_GRADIENT {
                &[8, 16, 32, 64]
            } else {
                &[10, 25, 50, 100]
            };
            for &rounds in rounds {
                by_rounds.push(rehearsals.expected(*kind, plan_epsilon, Some(rounds))?);
            }
        }
    }
    let kind = if question.effort == Effort::Quick { kinds[0] } else { recommended.kind() };
    let here = frontier
        .iter()
        .find(|e| e.algorithm == kind.name() && e.epsilon == plan_epsilon)
        .expect("the plan's own budget is among those that are compared")
        .clone();
    let curve = Curve::new(question, &frontier)?;
    let sites = rehearsals.sites(kind, &here, &curve)?;
    let alternatives = sites::alternatives(question, &sites, &curve)?;
    let needed = |auc_loss| EpsilonNeeded { auc_loss, epsilon: epsilon_needed(&frontier, kind, auc_loss) };
    let epsilon_needed = question.wanted_auc_loss.map(needed);
    let warnings = warnings(&recommended, pooled, &here, &sites);
    let traffic = traffic(question, &frontier);
    Ok(Advice {
        recommended,
        pooled,
        frontier,
        by_rounds,
        sites,
        alternatives,
        epsilon_needed,
        traffic,
        warnings,
    })
}

fn check(question: &Question<'_>) -> Result<(), AdviceError> {
    let network = question.network;
    let out = |name, value, rule| Err(AdviceError::OutOfRange { name, value, rule });
    if network.n_records.len() < 2 {
        return Err(AdviceError::TooFewSites { n: network.n_records.len() });
    }
    if let Some(i) = network.n_records.iter().position(|n| *n == 0) {
        return Err(AdviceError::EmptySite { site: question.names[i].clone() });
    }
    if !question.plan.settings().loss.is_classification() {
        return Err(AdviceError::NotClassification);
    }
    match question.signal {
        Signal::Assumed { auc, .. } if !(auc > 0.5 && auc < 0.999) => {
            out("auc", auc, "above 0.5 and below 0.999")
        }
        Signal::Assumed { positive, .. } if !(positive > 0.0 && positive < 1.0) => {
            out("positive", positive, "between 0 and 1, both excluded")
        }
        Signal::Table(table) if table.n_records() < LEAST_TABLE => {
            Err(AdviceError::SmallTable { n: table.n_records(), needed: LEAST_TABLE })
        }
        _ => match question.wanted_auc_loss {
            Some(loss) if !(loss > 0.0 && loss < 0.5) => {
                out("wanted-auc-loss", loss, "above 0 and below 0.5")
            }
            _ => Ok(()),
        },
    }
}

/// `μ` of a budget at the plan's δ.
fn mu(question: &Question<'_>, epsilon: f64) -> Result<f64, AdviceError> {
    Ok(gdp_mu(Budget::new(epsilon, question.plan.settings().delta)?).value())
}

/// The populations that methods are run on.
struct Rehearsals<'a> {
    question: &'a Question<'a>,
    populations: Vec<Population>,
}

/// Mean and standard deviation.
fn mean_std(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let n = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / n;
    let squares: f64 = values.map(|v| (v - mean) * (v - mean)).sum();
    (mean, (squares / (n - 1.0).max(1.0)).sqrt())
}

impl Rehearsals<'_> {
    fn pooled(&self) -> Pooled {
        let judged: Vec<Outcome> =
            self.populations.iter().map(|p| p.judge(self.question, &p.optimum)).collect();
        let n = judged.len() as f64;
        let mean = |of: fn(&Outcome) -> f64| judged.iter().map(of).sum::<f64>() / n;
        let majority = |population: &Population| {
            let labels = population.held_out.labels();
            let positive = labels.iter().filter(|z| **z > 0.0).count() as f64 / labels.len() as f64;
            positive.max(1.0 - positive)
        };
        Pooled {
            objective: self.populations.iter().map(|p| p.objective).sum::<f64>() / n,
            auc: mean(|o| o.auc),
            accuracy: mean(|o| o.accuracy),
            majority_accuracy: self.populations.iter().map(majority).sum::<f64>() / n,
        }
    }

    /// Those asked for and the plan's own, in order.
    fn epsilons(&self) -> Vec<f64> {
        let mut all = vec![self.question.plan.settings().epsilon];
        if self.question.effort == Effort::Full {
            all.extend_from_slice(self.question.epsilons);
        }
        all.sort_by(f64::total_cmp);
        all.dedup();
        all
    }

    /// The plan for another method, budget and number of rounds.
    fn plan(&self, kind: AlgorithmKind, epsilon: f64, rounds: Option<u32>) -> Result<Plan, AdviceError> {
        let own = self.question.plan.settings();
        let draft = if self.question.effort == Effort::Quick {
            own.clone()
        } else {
            let draft = self.question.plan.with_algorithm(kind)?.settings().clone();
            PlanDraft { epsilon, penalty: None, rounds: rounds.unwrap_or(draft.rounds), ..draft }
        };
        Ok(draft.check()?.for_network(self.question.network)?)
    }

    /// Runs of one method at one budget, on all populations.
    fn models(&self, plan: &Plan) -> Result<Vec<(usize, Vec<f64>)>, AdviceError> {
        let (question, settings) = (self.question, plan.settings());
        // One run of these is a few passes over the population, however many sites there are.
        let at_one_point = [CONSENSUS_NEWTON, PRIVATE_GRADIENT].contains(&settings.algorithm);
        let n_runs = match (at_one_point, question.network.n_records.len()) {
            (true, _) => 4,
            (false, ..FEW_SITES) => 3,
            (false, _) => 1,
        };
        let runs: Vec<(usize, u64)> =
            (0..self.populations.len()).flat_map(|k| (0..n_runs).map(move |run| (k, run))).collect();
        let mu = mu(question, settings.epsilon)?;
        let factor = noise_factor(settings.weights, question.network.n_records);
        runs.into_par_iter()
            .map(|(k, run)| {
                let (population, seed) = (&self.populations[k], 1000 * k as u64 + run);
                let model = if at_one_point {
                    population.at_one_point(question, plan, factor, mu, seed)
                } else {
                    admm(population, plan, question.network, seed)?
                };
                Ok((k, model))
            })
            .collect()
    }

    fn expected(
        &self,
        kind: AlgorithmKind,
        epsilon: f64,
        rounds: Option<u32>,
    ) -> Result<Expected, AdviceError> {
        let plan = self.plan(kind, epsilon, rounds)?;
        let outcomes: Vec<(usize, Outcome)> = self
            .models(&plan)?
            .into_par_iter()
            .map(|(k, model)| (k, self.populations[k].judge(self.question, &model)))
            .collect();
        let (loss, std) = mean_std(outcomes.iter().map(|(_, o)| o.loss));
        let (excess_objective, excess_objective_std) = mean_std(outcomes.iter().map(|(_, o)| o.excess));
        let (auc, auc_std) = mean_std(outcomes.iter().map(|(_, o)| o.auc));
        Ok(Expected {
            algorithm: plan.settings().algorithm.name().to_owned(),
            epsilon: plan.settings().epsilon,
            rounds: plan.settings().rounds,
            weights: plan.settings().weights,
            loss,
            std,
            excess_objective,
            excess_objective_std,
            auc,
            auc_std,
            auc_loss: self.pooled().auc - auc,
            accuracy: mean_std(outcomes.iter().map(|(_, o)| o.accuracy)).0,
        })
    }
}

/// What is lost against the noise `A/μ`: with it, everything about a network that consensus Newton's result depends on.
struct Curve {
    /// `(ln A/μ, ln of the excess objective, AUC)`, the least noise first.
    points: Vec<(f64, f64, f64)>,
    /// `A` at the plan's budget is divided by this.
    mu: f64,
}

impl Curve {
    /// From the first method of a frontier; for P-ADMM, whose noise depends on more, it is what changes first.
    fn new(question: &Question<'_>, frontier: &[Expected]) -> Result<Self, AdviceError> {
        let factor = noise_factor(question.plan.settings().weights, question.network.n_records);
        let mut points = vec![];
        for e in frontier.iter().filter(|e| e.algorithm == frontier[0].algorithm) {
            let noise = libm::log(factor / mu(question, e.epsilon)?);
            points.push((noise, libm::log(e.excess_objective.max(1e-9)), e.auc));
        }
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        Ok(Self { points, mu: mu(question, question.plan.settings().epsilon)? })
    }

    /// The excess objective and the AUC of a network with noise factor `A`, at the plan's budget. Beyond the curve's ends it is
    /// continued with the slope that theory has for the excess, 2.
    fn at(&self, factor: f64) -> (f64, f64) {
        let noise = libm::log(factor / self.mu);
        let after = self.points.partition_point(|p| p.0 < noise);
        let (a, b) = match (after.checked_sub(1).map(|k| self.points[k]), self.points.get(after)) {
            (Some(a), Some(&b)) => (a, b),
            (Some(end), None) | (None, Some(&end)) => {
                return (libm::exp(end.1 + 2.0 * (noise - end.0)), end.2);
            }
            (None, None) => unreachable!("a frontier has points"),
        };
        let part = if b.0 > a.0 { (noise - a.0) / (b.0 - a.0) } else { 0.0 };
        (libm::exp(a.1 + part * (b.1 - a.1)), a.2 + part * (b.2 - a.2))
    }
}

/// The least ε of a method's frontier, read between its points, at which no more than `wanted` is lost.
fn epsilon_needed(frontier: &[Expected], kind: AlgorithmKind, wanted: f64) -> Option<f64> {
    let points: Vec<&Expected> = frontier.iter().filter(|e| e.algorithm == kind.name()).collect();
    let enough = points.iter().rposition(|e| e.auc_loss > wanted).map_or(0, |k| k + 1);
    let upper = points.get(enough)?;
    let Some(lower) = enough.checked_sub(1).map(|k| points[k]) else { return Some(upper.epsilon) };
    let part = (lower.auc_loss - wanted) / (lower.auc_loss - upper.auc_loss);
    let (low, high) = (libm::log(lower.epsilon), libm::log(upper.epsilon));
    Some(libm::exp(low + part * (high - low)))
}

/// Bytes of a message beside its coefficients: plan, sender, round, signature.
const ENVELOPE: u64 = 180;
/// Seconds that a message and its answer take.
const ROUND_TRIP: f64 = 0.1;

fn traffic(question: &Question<'_>, frontier: &[Expected]) -> Vec<Traffic> {
    let (network, own) = (question.network, question.plan.settings());
    let (degree, p) = (network.graph.max_degree() as u64, network.space.n_features() as u64);
    let n_sites = network.n_records.len() as u64;
    let of = |e: &Expected| {
        let message = 8 * p + ENVELOPE;
        let (turns, messages) = if e.algorithm != P_ADMM.name() {
            // Every release goes over every edge at most once in each direction; stage 0 is twice as long.
            let passed_on = if degree + 1 == n_sites { 1 } else { n_sites };
            let stage_0 = u32::from(e.algorithm == CONSENSUS_NEWTON.name());
            (e.rounds, u64::from(e.rounds + stage_0) * passed_on * degree)
        } else {
            // The averages at the end go over every edge at most once in each direction.
            let turns = e.rounds + network.graph.diameter() as u32;
            (turns, (u64::from(e.rounds) + n_sites) * degree)
        };
        // Announcement, receipt and message: one and a half times there and back.
        let minutes = 1.5 * ROUND_TRIP * f64::from(turns) / 60.0;
        Traffic { algorithm: e.algorithm.clone(), rounds: turns, bytes: messages * message, minutes }
    };
    frontier.iter().filter(|e| e.epsilon == own.epsilon).map(of).collect()
}

/// A model is not expected to beat the more common class unless it is this much more often right.
const BEATS_MAJORITY: f64 = 0.002;

fn warnings(recommended: &Recommended, pooled: Pooled, here: &Expected, sites: &[SiteAdvice]) -> Vec<String> {
    let mut warnings = vec![];
    let beats = |accuracy: f64| accuracy > pooled.majority_accuracy + BEATS_MAJORITY;
    if beats(pooled.accuracy) && !beats(here.accuracy) {
        warnings.push(format!(
            "the joint model is not expected to be right more often than somebody who always says the more common class ({:.3} against \
             {:.3}, and {:.3} without privacy): allow a larger epsilon, or find more records",
            here.accuracy, pooled.majority_accuracy, pooled.accuracy
        ));
    }
    if recommended.noise_level > NOISY {
        warnings.push(format!(
            "the noise level pA/μ is {:.2}, and above {NOISY} a model may be no better than the base rate: allow a larger epsilon, use \
             fewer columns, or find more records",
            recommended.noise_level
        ));
    }
    let names = |of: &dyn Fn(&SiteAdvice) -> bool| -> Vec<&str> {
        sites.iter().filter(|s| of(s)).map(|s| s.site.as_str()).collect()
    };
    let alone = names(&|s| s.own_auc > s.joint_auc + 0.005);
    if !alone.is_empty() {
        warnings.push(format!(
            "the joint model is not expected to be better than what these sites can learn alone: {}; a model of their own that starts \
             from the joint one may still be",
            listed(&alone)
        ));
    }
    let noisy = names(&|s| s.adds_more_noise_than_knowledge);
    if !noisy.is_empty() {
        warnings.push(format!(
            "these sites add more noise than knowledge: {}; use damped weights, let them take part together with another site, or leave \
             them out",
            listed(&noisy)
        ));
    }
    warnings
}

/// Up to six names.
fn listed(names: &[&str]) -> String {
    let shown = names.iter().take(6).copied().collect::<Vec<_>>().join(", ");
    let more = names.len().saturating_sub(6);
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

/// `ν = pA/μ` of the plan with these weights.
pub fn noise_level(plan: &Plan, network: &NetworkFacts<'_>, weights: SiteWeights) -> f64 {
    let mu = gdp_mu(plan.budget()).value();
    picked(network.space.n_features(), noise_factor(weights, network.n_records), mu).1
}
