//! What was measured, as a table for people and as JSON for programs.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::Outcome;

/// One line of the table.
pub struct Row {
    what: String,
    ours: String,
    peer: String,
    /// The number that a target is about: a ratio, an exponent, an amount, a difference.
    value: f64,
    shown: String,
    /// Largest value that meets the target; none for what is only information.
    target: Option<f64>,
    target_shown: String,
}

impl Row {
    /// Our time over a peer's; the target is `1/parts`.
    pub fn ratio(what: impl Into<String>, ours: f64, peer: f64, parts: Option<f64>) -> Self {
        Row {
            what: what.into(),
            ours: seconds(ours),
            peer: seconds(peer),
            value: ours / peer,
            shown: format!("1/{:.1}", peer / ours),
            target: parts.map(|p| 1.0 / p),
            target_shown: parts.map_or(String::new(), |p| format!("1/{p}")),
        }
    }

    /// An amount that must stay below a limit.
    pub fn amount(what: impl Into<String>, value: f64, limit: f64) -> Self {
        Row { ours: format!("{value:.2}"), shown: String::new(), ..Row::limited(what, value, Some(limit)) }
    }

    /// The exponent of a power law, from 1 for what grows linearly.
    pub fn exponent(what: impl Into<String>, points: &[(f64, f64)], limit: Option<f64>) -> Self {
        let value = slope(points);
        let ours = points.iter().map(|p| seconds(p.1)).collect::<Vec<_>>().join(", ");
        Row { ours, shown: format!("^{value:.2}"), ..Row::limited(what, value, limit) }
    }

    /// A difference between results.
    pub fn difference(what: impl Into<String>, value: f64, limit: f64) -> Self {
        Row {
            shown: format!("{value:.1e}"),
            target_shown: format!("{limit:.0e}"),
            ..Row::limited(what, value, Some(limit))
        }
    }

    fn limited(what: impl Into<String>, value: f64, target: Option<f64>) -> Self {
        Row {
            what: what.into(),
            ours: String::new(),
            peer: String::new(),
            value,
            shown: String::new(),
            target,
            target_shown: target.map_or(String::new(), |t| format!("{t}")),
        }
    }

    fn verdict(&self) -> &'static str {
        match self.target {
            None => "",
            Some(target) if self.value <= target => "met",
            Some(_) => "NOT MET",
        }
    }
}

/// Everything that was measured.
#[derive(Default)]
pub struct Report {
    rows: Vec<Row>,
    facts: Vec<(String, f64)>,
}

impl Report {
    /// Adds a line of the table.
    pub fn row(&mut self, row: Row) {
        eprintln!("· {}: {} {}", row.what, row.ours, row.shown);
        self.rows.push(row);
    }

    /// Adds a number that no target is about.
    pub fn fact(&mut self, what: impl Into<String>, value: f64) {
        let what = what.into();
        let is_tiny = value != 0.0 && value.abs() < 1e-3;
        eprintln!("· {what}: {}", if is_tiny { format!("{value:.2e}") } else { format!("{value:.4}") });
        self.facts.push((what, value));
    }

    /// The table.
    pub fn table(&self) -> String {
        let head = ["what", "ours", "peer", "ratio", "target", ""].map(str::to_owned);
        let cells = |r: &Row| {
            let verdict = r.verdict().to_owned();
            [&r.what, &r.ours, &r.peer, &r.shown, &r.target_shown, &verdict].map(String::clone)
        };
        let lines: Vec<[String; 6]> = std::iter::once(head).chain(self.rows.iter().map(cells)).collect();
        let widths: Vec<usize> =
            (0..6).map(|c| lines.iter().map(|l| l[c].chars().count()).max().unwrap_or(0)).collect();
        let mut out = String::from("\n");
        for line in &lines {
            let _ = write!(out, "{:<w$}", line[0], w = widths[0]);
            for c in 1..5 {
                let _ = write!(out, "  {:>w$}", line[c], w = widths[c]);
            }
            let _ = writeln!(out, "  {}", line[5]);
        }
        out
    }

    /// The same with the facts, as JSON.
    pub fn json(&self, quick: bool) -> Outcome<String> {
        let row = |r: &Row| {
            let met = r.target.map(|t| r.value <= t);
            json!({ "what": r.what, "ours": r.ours, "peer": r.peer, "value": r.value, "target": r.target, "met": met })
        };
        let facts: Value =
            self.facts.iter().map(|(k, v)| (k.clone(), json!(v))).collect::<serde_json::Map<_, _>>().into();
        let all =
            json!({ "quick": quick, "rows": self.rows.iter().map(row).collect::<Vec<_>>(), "facts": facts });
        Ok(serde_json::to_string_pretty(&all)? + "\n")
    }
}

/// A time with a unit that suits it.
fn seconds(t: f64) -> String {
    match t {
        t if t >= 1.0 => format!("{t:.2} s"),
        t if t >= 1e-3 => format!("{:.2} ms", t * 1e3),
        t => format!("{:.1} µs", t * 1e6),
    }
}

/// Least-squares slope of `ln y` over `ln x`.
fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let logs: Vec<(f64, f64)> = points.iter().map(|p| (p.0.ln(), p.1.ln())).collect();
    let mean_x = logs.iter().map(|l| l.0).sum::<f64>() / n;
    let mean_y = logs.iter().map(|l| l.1).sum::<f64>() / n;
    let covariance: f64 = logs.iter().map(|l| (l.0 - mean_x) * (l.1 - mean_y)).sum();
    covariance / logs.iter().map(|l| (l.0 - mean_x).powi(2)).sum::<f64>()
}
