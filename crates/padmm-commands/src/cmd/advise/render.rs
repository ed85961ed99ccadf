//! Advice as tables and sentences.

use padmm_core::advice::{Advice, Expected};
use padmm_privacy::words::delta_text;
use padmm_privacy::words::epsilon_text;

use super::{BySignal, Facts, middle};
use crate::table::{align_right, plain};

/// Sites that are listed one by one; of more, the smallest and the largest.
const LISTED: usize = 20;

pub(super) fn text(facts: &Facts, found: &BySignal) -> String {
    let (signal, advice) = middle(found);
    let settings = &facts.settings;
    let mut text = format!(
        "{} sites, {} records, {} columns, ε = {}, δ = {}. No record was read: these are rehearsals on made-up or public records.\n\n",
        facts.names.len(),
        facts.n_records.iter().sum::<usize>(),
        facts.schema.feature_space().n_features(),
        settings.epsilon,
        delta_text(settings.delta),
    );
    text += &format!(
        "Recommended: {}, {} rounds, {} weights{}\n",
        advice.recommended.algorithm,
        advice.recommended.rounds,
        advice.recommended.weights,
        advice.recommended.penalty.map_or(String::new(), |p| format!(", penalty {p:.3e}")),
    );
    for reason in &advice.recommended.reasons {
        text += &format!("  {reason}\n");
    }
    for (signal, advice) in found {
        text += &format!("\n{}\n{}\n", heading(*signal, advice), expected_table(&advice.frontier));
    }
    text += &format!(
        "\nAt ε = {}, by rounds{}\n{}\n",
        settings.epsilon,
        of(*signal),
        expected_table(&advice.by_rounds)
    );
    text += &format!(
        "\nWhat each site gains{} (areas under the ROC curve)\n{}\n",
        of(*signal),
        sites_table(advice)
    );
    if !advice.alternatives.is_empty() {
        text += &format!("\nSites that add more noise than knowledge\n{}\n", alternatives_table(advice));
    }
    text += "\n";
    for (signal, advice) in found {
        if let Some(needed) = advice.epsilon_needed {
            let enough = match needed.epsilon {
                Some(epsilon) => format!("ε = {} is enough", epsilon_text(epsilon)),
                None => "no ε that was tried is enough".to_owned(),
            };
            text += &format!("To lose at most {} of the AUC{}: {enough}.\n", needed.auc_loss, of(*signal));
        }
    }
    for t in &advice.traffic {
        text += &format!(
            "{}: {} rounds, at most {} kB from a site, about {:.1} minutes where a message and its answer take 0.1 s.\n",
            t.algorithm,
            t.rounds,
            t.bytes.div_ceil(1000),
            t.minutes
        );
    }
    for warning in &advice.warnings {
        text += &format!("\nWarning: {warning}.\n");
    }
    text
}

fn of(signal: Option<f64>) -> String {
    signal.map_or(String::new(), |auc| format!(", assumed AUC {auc}"))
}

fn heading(signal: Option<f64>, advice: &Advice) -> String {
    let what = signal.map_or("As in the public table".to_owned(), |auc| format!("Assumed AUC {auc}"));
    format!(
        "{what}: without privacy {:.3} on other records, accuracy {:.3} (the more common class: {:.3})",
        advice.pooled.auc, advice.pooled.accuracy, advice.pooled.majority_accuracy
    )
}

fn expected_table(points: &[Expected]) -> String {
    let mut table = plain(["method", "ε", "rounds", "excess objective, %", "AUC", "lost AUC", "accuracy"]);
    align_right(&mut table, 1..7);
    for point in points {
        table.add_row([
            point.algorithm.clone(),
            point.epsilon.to_string(),
            point.rounds.to_string(),
            format!("{} ± {}", percent(point.excess_objective), percent(2.0 * point.excess_objective_std)),
            format!("{:.3} ± {:.3}", point.auc, 2.0 * point.auc_std),
            format!("{:.3}", point.auc_loss.max(0.0)),
            format!("{:.3}", point.accuracy),
        ]);
    }
    table.to_string()
}

/// Three digits that count.
fn percent(part: f64) -> String {
    let value = 100.0 * part;
    match value.abs() {
        100.0.. => format!("{value:.0}"),
        10.0..100.0 => format!("{value:.1}"),
        1.0..10.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

fn sites_table(advice: &Advice) -> String {
    let mut table =
        plain(["site", "records", "alone", "joint", "combined", "adds more noise than knowledge"]);
    align_right(&mut table, 1..6);
    let mut sites: Vec<_> = advice.sites.iter().collect();
    let hidden = sites.len().saturating_sub(LISTED);
    if hidden > 0 {
        sites.sort_by_key(|s| s.records);
        sites.drain(LISTED / 2..LISTED / 2 + hidden);
    }
    for s in sites {
        table.add_row([
            s.site.clone(),
            s.records.to_string(),
            format!("{:.3}", s.own_auc),
            format!("{:.3}", s.joint_auc),
            format!("{:.3}", s.combined_auc),
            if s.adds_more_noise_than_knowledge { "yes" } else { "no" }.to_owned(),
        ]);
    }
    let more =
        if hidden > 0 { format!("\n{hidden} sites of middle size are not shown.") } else { String::new() };
    format!("{table}{more}")
}

fn alternatives_table(advice: &Advice) -> String {
    let mut table = plain(["what is done", "sites", "records", "excess objective, %", "AUC"]);
    align_right(&mut table, 1..5);
    for a in &advice.alternatives {
        table.add_row([
            a.what.clone(),
            a.sites.to_string(),
            a.records.to_string(),
            percent(a.excess_objective),
            format!("{:.3}", a.auc),
        ]);
    }
    table.to_string()
}
