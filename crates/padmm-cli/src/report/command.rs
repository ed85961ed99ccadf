//! The command that repeats a simulation.

use std::path::Path;

use padmm_core::loss::Loss;
use padmm_core::plan::{AccountantKind, Output, PlanDraft, SiteWeights};
use padmm_core::regularizer::Regularizer;
use padmm_privacy::SensitivityBasis;
use padmm_sim::record::Record;

/// The command that repeats a simulation of a shipped data set.
pub(super) fn simulate_command(record: &Record) -> String {
    let (setting, s) = (&record.setting, record.setting.plan.settings());
    let dataset = if Path::new(&setting.dataset).extension().is_some() {
        format!("--data {} --schema SCHEMA", setting.dataset)
    } else {
        format!("--dataset {}", setting.dataset)
    };
    let accountant = match s.accountant {
        AccountantKind::Exact => "",
        AccountantKind::Paper => " --accountant paper",
        AccountantKind::Basic => " --accountant basic",
    };
    let mut text = format!(
        "padmm simulate {dataset} --algorithm {} --split {} --graph {} --rounds {} --epsilon {} --delta {} --decay {} --penalty {}{accountant}",
        s.algorithm.name(),
        setting.split,
        setting.graph,
        s.rounds,
        s.epsilon,
        s.delta,
        s.decay,
        setting.penalty,
    );
    if setting.split.to_string() != "site" {
        text.push_str(&format!(" --agents {}", setting.sites.len()));
    }
    if setting.holdout.to_string() != "none" {
        text.push_str(&format!(" --holdout {}", setting.holdout));
    }
    text.push_str(&problem_flags(s));
    text.push_str(&format!(" --runs {} --seed {}", record.runs.len(), setting.seed));
    text
}

/// Flags of the problem and of the algorithm, where they differ from the defaults.
fn problem_flags(s: &PlanDraft) -> String {
    let mut text = match s.loss {
        Loss::Logistic => String::new(),
        Loss::Hinge => " --loss hinge".into(),
        Loss::HuberizedHinge { width } => format!(" --loss huberized-hinge --loss-width {width}"),
        Loss::Huber { width } => format!(" --loss huber --loss-width {width}"),
        Loss::Squared => " --loss squared".into(),
        Loss::Quantile { level, width } => {
            format!(" --loss quantile --quantile-level {level} --loss-width {width}")
        }
        Loss::Poisson { .. } => " --loss poisson".into(),
    };
    if let Some(cap) = s.slope_cap {
        text.push_str(&format!(" --slope-cap {cap}"));
    }
    if s.weights != SiteWeights::default() {
        text.push_str(&format!(" --weights {}", s.weights));
    }
    text.push_str(&match s.regularizer {
        Regularizer::None => " --regularizer none".into(),
        Regularizer::L2 { strength } => format!(" --regularization {strength}"),
        Regularizer::L1 { strength } => format!(" --regularizer l1 --regularization {strength}"),
        Regularizer::ElasticNet { strength, l1_ratio } => {
            format!(" --regularizer elastic-net --regularization {strength} --l1-ratio {l1_ratio}")
        }
        Regularizer::GroupLasso { strength } => {
            format!(" --regularizer group-lasso --regularization {strength}")
        }
    });
    for (name, value) in s.own.iter() {
        text.push_str(&format!(" --{name} {value}"));
    }
    if let Some(tolerance) = s.tolerance {
        text.push_str(&format!(" --tolerance {tolerance}"));
    }
    if s.sensitivity == SensitivityBasis::Paper {
        text.push_str(" --sensitivity paper");
    }
    if s.output == Output::Last {
        text.push_str(" --output last");
    }
    text
}
