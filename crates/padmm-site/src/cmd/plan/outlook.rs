//! What a plan may be expected to come to: the short form of `padmm advise`, from public facts alone.

use padmm_commands::cmd::advise::POSITIVE;
use padmm_core::advice::{
    Advice, Effort, Expected, Question, Signal, advise, recommend, recommended_weights,
};
use padmm_core::algorithm::{CONSENSUS_NEWTON, P_ADMM};
use padmm_core::calibration::NetworkFacts;
use padmm_core::plan::Open;
use padmm_node::contract::Contract;
use serde::Serialize;

/// The signal that is assumed: neither a weak nor a strong one.
const SIGNAL: f64 = 0.75;

/// What is expected, for people who are about to sign.
#[derive(Serialize)]
pub(super) struct Outlook {
    assumed_auc: f64,
    expected: Expected,
    pooled_auc: f64,
    majority_accuracy: f64,
    recommended: String,
    warnings: Vec<String>,
}

/// Every site's number of records.
fn records(contract: &Contract) -> Vec<usize> {
    contract.sites().iter().map(|site| site.records).collect()
}

/// Why the rule picked what `open` left to it.
pub(super) fn reasons(contract: &Contract, open: &Open) -> anyhow::Result<Vec<String>> {
    let (plan, n_records) = (contract.plan(), records(contract));
    let mut reasons = vec![];
    if open.weights {
        reasons.push(recommended_weights(&n_records).1);
    }
    if let Some(setting) = open.solving {
        reasons.push(format!("{}: it has a use for the `{setting}` that was given", P_ADMM.title()));
    } else if open.algorithm {
        let found = recommend(plan, &network(contract, &n_records))?;
        reasons.extend(found.reasons.into_iter().next_back());
    }
    Ok(reasons)
}

fn network<'a>(contract: &'a Contract, n_records: &'a [usize]) -> NetworkFacts<'a> {
    let norm_bound = contract.schema().norm_bound();
    NetworkFacts { graph: contract.graph(), n_records, space: contract.space(), norm_bound }
}

/// None where nothing is known: labels that are numbers, and methods that are not rehearsed.
pub(super) fn of(contract: &Contract) -> Option<Outlook> {
    let settings = contract.plan().settings();
    if ![P_ADMM, CONSENSUS_NEWTON].contains(&settings.algorithm) || !settings.loss.is_classification() {
        return None;
    }
    let n_records = records(contract);
    let names: Vec<String> = contract.sites().iter().map(|site| site.name.to_string()).collect();
    let network = network(contract, &n_records);
    let advice = advise(&Question {
        plan: contract.plan(),
        network: &network,
        names: &names,
        signal: Signal::Assumed { auc: SIGNAL, positive: POSITIVE },
        epsilons: &[],
        wanted_auc_loss: None,
        effort: Effort::Quick,
    });
    let Advice { recommended, pooled, frontier, warnings, .. } = advice.ok()?;
    Some(Outlook {
        assumed_auc: SIGNAL,
        expected: frontier.into_iter().next()?,
        pooled_auc: pooled.auc,
        majority_accuracy: pooled.majority_accuracy,
        recommended: format!(
            "{}, {} rounds, {} weights",
            recommended.algorithm, recommended.rounds, recommended.weights
        ),
        warnings,
    })
}

impl Outlook {
    pub(super) fn text(&self) -> String {
        let expected = &self.expected;
        let mut text = format!(
            "What to expect, if the best model has an AUC of {} (an assumption; no record was read): AUC {:.3} ± {:.3} where pooling all \
             records without privacy gives {:.3}, accuracy {:.3} (the more common class: {:.3}), objective {:.1} % above the pooled \
             optimum. Recommended for these sites: {}. More: padmm-site advise --plan FILE\n",
            self.assumed_auc,
            expected.auc,
            2.0 * expected.auc_std,
            self.pooled_auc,
            expected.accuracy,
            self.majority_accuracy,
            100.0 * expected.excess_objective,
            self.recommended,
        );
        for warning in &self.warnings {
            text += &format!("\nExpected: {warning}.\n");
        }
        text
    }
}
