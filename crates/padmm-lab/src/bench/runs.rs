//! Our runs of one network, in several processes.

use super::case::{Answer, Case};
use super::{Row, best, median};

/// Runs of a case with two threads, and with one. Whatever is said of them is the best over all processes: time, and the limit that
/// it is set against.
pub(super) struct Runs {
    case: Case,
    two: Vec<Answer>,
    one: Vec<Answer>,
}

pub(super) fn best_of(answers: &[Answer], what: &str) -> anyhow::Result<f64> {
    Ok(best(&answers.iter().map(|a| a.time(what)).collect::<Result<Vec<_>, _>>()?))
}

/// How many times the least time for reading the records once a piece takes that reads them at least `passes` times.
pub(super) fn to_limit(answers: &[Answer], what: &str, passes: f64) -> anyhow::Result<f64> {
    Ok(best_of(answers, what)? / (passes * best_of(answers, "limit")?))
}

impl Runs {
    pub(super) fn of(case: Case) -> Self {
        Self { case, two: vec![], one: vec![] }
    }

    pub(super) fn case(&self) -> &Case {
        &self.case
    }

    /// Another process with two threads.
    pub(super) fn again(&mut self) -> anyhow::Result<()> {
        self.two.push(Case { limit: true, ..self.case.clone() }.in_child()?);
        Ok(())
    }

    /// Another process with one thread.
    pub(super) fn again_alone(&mut self) -> anyhow::Result<()> {
        self.one.push(Case { threads: 1, ..self.case.clone() }.in_child()?);
        Ok(())
    }

    /// Best seconds of a run over all processes with two threads.
    pub(super) fn seconds(&self) -> anyhow::Result<f64> {
        best_of(&self.two, "run")
    }

    /// Seconds of a run in the middle of all, not the best.
    pub(super) fn median_seconds(&self) -> anyhow::Result<f64> {
        Ok(median(&self.two.iter().map(|a| a.fact("median run")).collect::<Result<Vec<_>, _>>()?))
    }

    pub(super) fn seconds_per_round(&self) -> anyhow::Result<f64> {
        Ok(self.seconds()? / f64::from(self.case.rounds))
    }

    /// The most memory of any of them.
    pub(super) fn peak_bytes(&self) -> Option<f64> {
        self.two.iter().filter_map(|a| a.peak_bytes).max_by(f64::total_cmp)
    }

    fn row_of(&self, what: impl Into<String>, runs: f64) -> anyhow::Result<Row> {
        let ratio = to_limit(&self.two, "run", f64::from(self.case.rounds))?;
        let row = Row::ours(what, runs * self.seconds()?, self.peak_bytes()).to_limit(ratio);
        Ok(row.alone(runs * best_of(&self.one, "run")?))
    }

    pub(super) fn row(&self, what: impl Into<String>) -> anyhow::Result<Row> {
        self.row_of(what, 1.0)
    }

    pub(super) fn row_of_a_round(&self, what: impl Into<String>) -> anyhow::Result<Row> {
        self.row_of(what, 1.0 / f64::from(self.case.rounds))
    }
}
