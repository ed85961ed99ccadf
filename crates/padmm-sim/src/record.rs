//! The record of a simulation: everything that a figure, a table or a repetition needs, in one JSON file.

use padmm_core::algorithm::AlgorithmKind;
use padmm_core::metrics::{BestConstant, Recalibration};
use padmm_core::plan::{Plan, PlanDraft};
use padmm_core::privacy_noise::PrivacyNoise;
use padmm_privacy::{Compositions, PrivacyReport, Schedule, SensitivityBasis};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::metrics::{ModelMetrics, RoundMetrics};
use crate::own::SiteModels;
use crate::split::{Holdout, Split};

/// The record's format; a change that old readers cannot follow gets a new number.
pub const FORMAT: &str = "padmm-record/1";

/// One simulation: the setting, what it cost, and every run's trace.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// [`FORMAT`] of the program that wrote it.
    pub format: String,
    /// Version of the program that wrote it.
    pub version: String,
    /// Everything that a repetition has to be given.
    pub setting: Setting,
    /// What it costs, the largest over agents; none without privacy.
    pub privacy: Option<PrivacyRecord>,
    /// What the noise source says it is, in words.
    pub noise_source: String,
    /// The dynamic zCDP curve of every site: what each round was charged.
    pub charges: Vec<Charges>,
    /// The pooled problem's minimiser, which a network without noise approaches; none if it was not asked for.
    #[serde(default)]
    pub optimum: Option<Optimum>,
    /// What the same answer for everybody would give: loss on the training records, accuracy on the evaluation records.
    #[serde(default)]
    pub constant: Option<BestConstant>,
    /// The same network without noise, if it was run.
    pub reference: Option<RunRecord>,
    /// Independent runs with noise, by number.
    pub runs: Vec<RunRecord>,
    /// Mean and standard deviation over runs.
    pub summary: Summary,
    /// Wall time of all runs, the reference included, in seconds.
    pub seconds: f64,
}

/// What was run: data, network and plan.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Setting {
    /// What the records were loaded as: a shipped set, a file's path, or a name of your own.
    pub dataset: String,
    /// Columns after encoding, hence coefficients of a model.
    pub features: usize,
    /// How many records were used, dropped and set aside.
    pub records: Counts,
    /// Every site, by its place in the graph.
    pub sites: Vec<SiteRecord>,
    /// The graph as it was asked for.
    pub graph: String,
    /// How training records were dealt to the sites.
    pub split: Split,
    /// Which records were set aside for evaluation.
    pub holdout: Holdout,
    /// Seed of split, random graph and simulated noise.
    pub seed: u64,
    /// The plan as it was checked; its noise follows from it and from the sites.
    #[serde(deserialize_with = "any_plan")]
    pub plan: Plan,
    /// `η` as it was used, whether given or derived.
    pub penalty: f64,
    /// How often the sites' averages were passed on after the last round; earlier records have the rounds of gossip here.
    #[serde(alias = "gossip_rounds")]
    pub averaging_turns: u32,
}

/// A plan of any algorithm that a simulation knows; by itself a plan reads back those of real sites only.
fn any_plan<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Plan, D::Error> {
    let mut text = serde_json::Map::deserialize(deserializer)?;
    let name = text.remove("algorithm");
    let name = name.as_ref().and_then(|name| name.as_str()).unwrap_or_default();
    let algorithm = AlgorithmKind::named(name, &padmm_baselines::ALL)
        .ok_or_else(|| D::Error::custom(format!("{name:?} is not an algorithm of this program")))?;
    let draft: PlanDraft = serde_json::from_value(text.into()).map_err(D::Error::custom)?;
    PlanDraft { algorithm, ..draft }.check().map_err(D::Error::custom)
}

/// Counts of records. These are computed from records: a simulation may show them, a site may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Records that the schema's missing-value rule leaves in: `train + test`.
    pub used: usize,
    /// Records that the missing-value rule left out.
    pub dropped: usize,
    /// Of the used ones, those that train.
    pub train: usize,
    /// Of the used ones, those set aside.
    pub test: usize,
}

/// What a site contributes to the network, by public numbers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SiteRecord {
    /// From the site column or the network; otherwise `agent-1`, `agent-2`, …
    pub name: String,
    /// `n_i`: its training records.
    pub records: usize,
    /// `d_i`: how many neighbours it has.
    pub degree: usize,
}

/// Privacy of a run, the largest over agents.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PrivacyRecord {
    /// Epsilon at `delta` by the best valid accounting, rounded up; this is the guarantee.
    pub epsilon_exact: f64,
    /// ε by the paper's conversion, rounded up.
    pub epsilon_paper: f64,
    /// δ, of which `delta_slack` is for the discreteness of the noise.
    pub delta: f64,
    /// The part of `delta` that pays for the noise being discrete.
    pub delta_slack: f64,
    /// ρ over all rounds, the largest over agents.
    pub rho_total: f64,
    /// Standard deviation of the first round's noise.
    pub noise_std_first: f64,
    /// Standard deviation of the last round's noise.
    pub noise_std_last: f64,
    /// Δ as the charges use it, the grid's share included.
    pub sensitivity: f64,
    /// Whether Δ is derived for one record or taken from the paper.
    pub sensitivity_basis: SensitivityBasis,
    /// ε by every composition rule, for methods whose rounds are purely private.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compositions: Option<Compositions>,
    /// Rounds that use data; the others are free.
    #[serde(default)]
    pub rounds_charged: u32,
    /// Whether the guarantee covers finite precision.
    #[serde(default)]
    pub noise_is_exact: bool,
    /// Which data sets count as neighbours, in words.
    pub adjacency: String,
    /// The guarantee of the agent with the largest ε, for a data-protection officer.
    pub statement: String,
}

impl PrivacyRecord {
    /// The largest of each number over agents; the statement is that of the agent with the largest ε.
    pub fn worst(reports: &[PrivacyReport]) -> Option<Self> {
        let worst = reports.iter().max_by(|a, b| a.epsilon_exact.total_cmp(&b.epsilon_exact))?;
        let largest = |f: fn(&PrivacyReport) -> f64| reports.iter().map(f).fold(f64::NEG_INFINITY, f64::max);
        Some(Self {
            epsilon_exact: worst.epsilon_exact,
            epsilon_paper: largest(|r| r.epsilon_paper),
            delta: worst.delta,
            delta_slack: largest(|r| r.delta_slack),
            rho_total: largest(|r| r.rho_total),
            noise_std_first: largest(|r| r.noise_std_first),
            noise_std_last: largest(|r| r.noise_std_last),
            sensitivity: largest(|r| r.sensitivity),
            sensitivity_basis: worst.sensitivity_basis,
            compositions: worst.compositions,
            rounds_charged: worst.rounds_charged,
            noise_is_exact: worst.noise_is_exact,
            adjacency: worst.adjacency.to_string(),
            statement: worst.statement(),
        })
    }
}

/// What one site was charged, round by round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Charges {
    /// Its name, as in [`Setting::sites`].
    pub site: String,
    /// Δ of the site, the grid's share included.
    pub sensitivity: f64,
    /// ρ of each round, from the first; zero for a free round.
    pub rho_per_round: Vec<f64>,
}

impl Charges {
    /// What the schedule charges a site in every round; a free round costs nothing.
    pub(crate) fn of(site: &str, schedule: &dyn Schedule) -> Self {
        let rho_per_round = (1..=schedule.rounds()).map(|round| schedule.rho(round)).collect();
        Self { site: site.to_owned(), sensitivity: schedule.report().sensitivity, rho_per_round }
    }
}

/// The minimiser of the pooled problem.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Optimum {
    /// Mean loss on all training records, without regulariser.
    pub loss: f64,
    /// What it minimises: the sites' mean losses with their weights, plus `R/N`.
    pub objective: f64,
    /// Euclidean norm of the coefficients.
    pub norm: f64,
    /// On the evaluation records; `None` for regression.
    pub accuracy: Option<f64>,
    /// On the evaluation records; `None` for regression.
    pub auc: Option<f64>,
    /// Whether its margins are log-odds, on the evaluation records.
    #[serde(default)]
    pub calibration: Option<Recalibration>,
    /// Accuracy at each site on its own records that were set aside; empty if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub site_accuracy: Vec<Option<f64>>,
}

/// What was measured in one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunRecord {
    /// Run number, from 0; with the setting's seed it determines the noise.
    pub run: u32,
    /// One entry for each private round, in order.
    pub trace: Vec<RoundMetrics>,
    /// The last releases, scored on all records, mean over all agents.
    pub last: ModelMetrics,
    /// The smoothed models, scored on all records, mean over all agents.
    pub smoothed: ModelMetrics,
    /// Accuracy of each site's kept model on that site's own records that were set aside; empty if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub site_accuracy: Vec<Option<f64>>,
    /// What each site would make of the model for itself; empty if that was not asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own_models: Vec<SiteModels>,
    /// How far privacy noise may have moved the first site's model, where the algorithm can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub privacy_noise: Option<PrivacyNoise>,
}

/// A mean over runs, with their spread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MeanStd {
    /// Arithmetic mean of the runs.
    pub mean: f64,
    /// Standard deviation of the runs (divided by their number, as the paper does).
    pub std: f64,
}

impl MeanStd {
    /// Of at least one number; of none, both fields are NaN.
    pub fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let n = values.clone().count() as f64;
        let mean = values.clone().sum::<f64>() / n;
        Self { mean, std: (values.map(|v| (v - mean) * (v - mean)).sum::<f64>() / n).sqrt() }
    }
}

/// Means over all runs, for tables and figures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// The paper's measure after the last round; none where rounds were not measured.
    pub average_loss: Option<MeanStd>,
    /// The paper's measure after every round.
    pub average_loss_per_round: Vec<MeanStd>,
    /// The last releases on all training records.
    pub pooled_loss: MeanStd,
    /// The models that sites keep, on all records.
    pub model_loss: MeanStd,
    /// What the run minimises, of the models that sites keep.
    #[serde(default)]
    pub model_objective: Option<MeanStd>,
    /// Accuracy of the models that sites keep.
    pub accuracy: Option<MeanStd>,
    /// AUC of the models that sites keep.
    pub auc: Option<MeanStd>,
    /// Whether the margins of the models that sites keep are log-odds, mean over runs.
    #[serde(default)]
    pub calibration: Option<Recalibration>,
    /// What accuracy, AUC and calibration were computed on: "held-out records" or "training records".
    pub evaluated_on: String,
}

impl Record {
    /// How far the models that sites keep are above the pooled optimum in loss, as a part of it; below zero where they fit the records
    /// better than the regularised optimum does; `None` without an optimum.
    pub fn excess_loss(&self) -> Option<f64> {
        Some(self.summary.model_loss.mean / self.optimum.as_ref()?.loss - 1.0)
    }

    /// The same in the objective, which nothing is below; `None` also in records of older programs.
    pub fn excess_objective(&self) -> Option<f64> {
        Some(self.summary.model_objective.as_ref()?.mean / self.optimum.as_ref()?.objective - 1.0)
    }

    /// Why the models that sites keep are worth nothing, if they are: the same answer for everybody is as good.
    pub fn worthless(&self) -> Option<String> {
        let constant = self.constant?;
        let pair = |a: Option<f64>, b: Option<f64>| Some((a?, b?));
        let (accuracy, loss) = (self.summary.accuracy.as_ref().map(|m| m.mean), self.summary.model_loss.mean);
        let mut reasons = vec![];
        if let Some((found, larger)) = pair(accuracy, constant.accuracy).filter(|(a, b)| a <= b) {
            let best = self.optimum.as_ref().and_then(|optimum| optimum.accuracy);
            let neither = best.is_some_and(|best| best <= larger);
            let neither = if neither { ", nor does the pooled optimum" } else { "" };
            reasons.push(format!(
                "its accuracy of {found:.4} does not beat that of always answering the larger class, {larger:.4}{neither}"
            ));
        }
        // A NaN is no better either.
        if loss.is_nan() || loss >= constant.loss {
            let neither = self.optimum.as_ref().is_some_and(|optimum| optimum.loss >= constant.loss);
            let neither = if neither { ", nor does the pooled optimum" } else { "" };
            reasons.push(format!(
                "its loss of {loss:.4} does not beat that of the base rate alone, {:.4}{neither}",
                constant.loss
            ));
        }
        let reasons = reasons.join("; ");
        (!reasons.is_empty()).then(|| {
            format!("the model that sites keep is no better than the same answer for everybody: {reasons}")
        })
    }

    /// The traces as CSV, one line for each run and round.
    pub fn trace_csv(&self) -> String {
        let mut text = String::from(
            "run,round,average_loss,pooled_loss,smoothed_loss,consensus_error,distance_to_optimum,accuracy,auc,rho,rho_spent,epsilon_exact,epsilon_paper\n",
        );
        let optional = |v: Option<f64>| v.map_or(String::new(), |v| v.to_string());
        for run in &self.runs {
            for m in &run.trace {
                let fields = [
                    run.run.to_string(),
                    m.round.to_string(),
                    optional(m.average_loss),
                    optional(m.pooled_loss),
                    optional(m.smoothed_loss),
                    m.consensus_error.to_string(),
                    optional(m.distance_to_optimum),
                    optional(m.accuracy),
                    optional(m.auc),
                    m.rho.to_string(),
                    m.rho_spent.to_string(),
                    optional(m.epsilon_exact),
                    optional(m.epsilon_paper),
                ];
                text.push_str(&fields.join(","));
                text.push('\n');
            }
        }
        text
    }
}
