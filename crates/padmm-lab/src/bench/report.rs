//! What was measured, row by row.

use serde::Serialize;
use serde_json::{Map, Value, json};

/// A number that a row has to reach.
#[derive(Clone, Debug, Serialize)]
pub struct Target {
    /// The bound, such as `≥ 10` or `≤ 2`.
    pub text: String,
    /// Whether the row reaches it.
    pub met: bool,
}

impl Target {
    /// `value` is to be at least `bound`.
    pub fn at_least(value: f64, bound: f64) -> Self {
        Self { text: format!("≥ {bound}"), met: value >= bound }
    }

    /// `value` is to be at most `bound`.
    pub fn at_most(value: f64, bound: f64) -> Self {
        Self { text: format!("≤ {bound}"), met: value <= bound }
    }
}

/// One piece of work with its times, or another number.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Row {
    /// The work in words, as it is listed.
    pub work: String,
    /// Our seconds, with two threads unless the row says otherwise.
    pub seconds: Option<f64>,
    /// Our seconds with one thread.
    pub one_thread_seconds: Option<f64>,
    /// The most memory of our process, in bytes.
    pub peak_bytes: Option<f64>,
    /// Name of the fastest peer on the same problem; `None` where it has none.
    pub peer: Option<String>,
    /// Seconds that this peer takes.
    pub peer_seconds: Option<f64>,
    /// The most memory of its process, in bytes.
    pub peer_peak_bytes: Option<f64>,
    /// How many times our time the peer takes.
    pub ratio_to_best_peer: Option<f64>,
    /// How many times we take what the machine takes at least to read all records once, in every round if there are rounds.
    pub ratio_to_limit: Option<f64>,
    /// Any other number that the row is about.
    pub value: Option<f64>,
    /// What the ratio or the value has to reach; `None` where nothing is asked.
    pub target: Option<Target>,
}

impl Row {
    /// Our own time, without any peer yet.
    pub fn ours(work: impl Into<String>, seconds: f64, peak_bytes: Option<f64>) -> Self {
        Self { work: work.into(), seconds: Some(seconds), peak_bytes, ..Self::default() }
    }

    /// A number that is no time.
    pub fn number(work: impl Into<String>, value: f64) -> Self {
        Self { work: work.into(), value: Some(value), ..Self::default() }
    }

    /// Adds the fastest peer, and how many times our time it takes.
    pub fn against(self, peer: impl Into<String>, peer_seconds: f64, peer_peak_bytes: Option<f64>) -> Self {
        let ratio_to_best_peer = self.seconds.map(|s| peer_seconds / s);
        Self {
            peer: Some(peer.into()),
            peer_seconds: Some(peer_seconds),
            peer_peak_bytes,
            ratio_to_best_peer,
            ..self
        }
    }

    /// Adds a number that the row has to reach.
    pub fn target(self, target: Target) -> Self {
        Self { target: Some(target), ..self }
    }

    /// The ratio to the peer is to be at least this.
    pub fn at_least(self, bound: f64) -> Self {
        let ratio = self.ratio_to_best_peer.unwrap_or(0.0);
        self.target(Target::at_least(ratio, bound))
    }

    /// With its time in one thread.
    pub fn alone(self, seconds: f64) -> Self {
        Self { one_thread_seconds: Some(seconds), ..self }
    }

    /// With its ratio to the limit.
    pub fn to_limit(self, ratio: f64) -> Self {
        Self { ratio_to_limit: Some(ratio), ..self }
    }

    /// The ratio to the limit is to be at most this.
    pub fn within(self, ratio: f64, bound: f64) -> Self {
        self.to_limit(ratio).target(Target::at_most(ratio, bound))
    }
}

/// All rows, and the numbers that they come to.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// One for each piece of work, in the order of measurement.
    pub rows: Vec<Row>,
    /// Named numbers that are about more than one row.
    pub summary: Map<String, Value>,
}

impl Report {
    /// Appends a row to those that are there.
    pub fn row(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Adds a named number to the summary, or replaces it.
    pub fn note(&mut self, name: &str, value: impl Into<Value>) {
        self.summary.insert(name.to_owned(), value.into());
    }

    /// Whether every target is met; rows without one do not count.
    pub fn all_met(&self) -> bool {
        self.rows.iter().filter_map(|r| r.target.as_ref()).all(|t| t.met)
    }

    /// Another report's rows and numbers too, its numbers under its name.
    pub fn include(&mut self, name: &str, other: Self) {
        self.rows.extend(other.rows);
        self.summary.insert(name.to_owned(), other.summary.into());
    }

    /// The summary's numbers, all rows, and whether all targets are met.
    pub fn json(&self) -> Value {
        let mut all = self.summary.clone();
        all.insert("all_targets_met".to_owned(), self.all_met().into());
        all.insert("rows".to_owned(), json!(self.rows));
        all.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_the_peer_to_us_and_targets_say_what_is_missed() {
        let fast = Row::ours("a", 0.5, None).against("peer", 5.0, None).at_least(10.0);
        let slow = Row::ours("b", 0.5, None).within(2.5, 2.0);
        assert_eq!(fast.ratio_to_best_peer, Some(10.0));
        let mut report = Report::default();
        report.row(fast);
        assert!(report.all_met());
        report.row(slow);
        report.note("gradient_norm", 1e-9);
        let json = report.json();
        assert_eq!(json["all_targets_met"], false);
        assert_eq!(json["gradient_norm"], 1e-9);
        assert_eq!(json["rows"][1]["target"]["met"], false);
    }
}
