//! This program against its peers and against the machine, on the same work in one go: `padmm-bench`.
//!
//! Times on a shared machine mean little, so everything is a ratio to something that was measured minutes
//! before or after: to the fastest peer on the same problem, and to what the machine itself can read and
//! compute. Every piece of work, ours or a peer's, has a process of its own, so that its peak of memory is
//! its own too.

pub mod case;
mod export;
pub mod limit;
mod peers;
mod report;
mod run;
mod runs;
mod scale;
pub mod shape;
mod solve;

use std::path::PathBuf;

pub use peers::Environment;
pub use report::{Report, Row, Target};
pub use run::run;
pub use scale::scale;
pub use solve::solve;

/// Where to measure, how thoroughly, and who is told.
pub struct Bench<'a> {
    /// Folder for the peers' environments and the problems that they read.
    pub folder: PathBuf,
    /// Fewer repetitions and smaller sizes.
    pub quick: bool,
    /// Hears what is measured now.
    pub watch: &'a (dyn Fn(&str) + Sync),
}

impl Bench<'_> {
    /// Repetitions: few when in a hurry.
    fn repeat(&self, quick: usize, full: usize) -> usize {
        if self.quick { quick } else { full }
    }

    fn problem(&self, name: &str) -> anyhow::Result<PathBuf> {
        let folder = self.folder.join("problems").join(name);
        std::fs::create_dir_all(&folder)?;
        Ok(folder)
    }
}

/// The best time: what comes near the machine's own, because others on it can only add.
pub(crate) fn best(seconds: &[f64]) -> f64 {
    seconds.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Middle value, or the mean of the middle two.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    assert!(n > 0, "a median needs values");
    0.5 * (sorted[(n - 1) / 2] + sorted[n / 2])
}
