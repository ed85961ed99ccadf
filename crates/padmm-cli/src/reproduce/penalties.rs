//! The penalty of every series: the best of a stated grid, chosen once by `padmm reproduce --tune` and kept in
//! `experiments/penalties.csv`.

use anyhow::{Context, ensure};

const SHIPPED: &str = include_str!("../../experiments/penalties.csv");

/// The grid: `2η·d`, the weight of the proximal term, with `d` the mean degree. Every algorithm gets the same one.
pub(crate) const GRID: [f64; 10] = [3e-4, 1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2, 3.2e-2, 6.4e-2, 0.13, 0.4];

/// One point of the grid for one series.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Tried {
    pub experiment: String,
    pub series: String,
    pub at: String,
    pub penalty: f64,
    /// Average loss after the last round, mean over the tuning runs.
    pub average_loss: f64,
    /// Whether it is the one that is used.
    pub best: bool,
}

/// Every point of the grid that was tried, for every series.
#[derive(Debug, Default)]
pub(crate) struct Penalties {
    rows: Vec<Tried>,
}

impl Penalties {
    /// The table that is built in.
    pub(crate) fn shipped() -> anyhow::Result<Self> {
        let mut reader = csv::Reader::from_reader(SHIPPED.as_bytes());
        let rows: Vec<Tried> =
            reader.deserialize().collect::<Result<_, _>>().context("experiments/penalties.csv")?;
        for row in &rows {
            ensure!(
                row.penalty > 0.0,
                "experiments/penalties.csv: the penalty of {} is not positive",
                row.series
            );
        }
        Ok(Self { rows })
    }

    /// The penalty that was best for a series at a point; none if it was not tuned.
    pub(crate) fn best(&self, experiment: &str, series: &str, at: &str) -> Option<f64> {
        let is_it = |r: &&Tried| r.best && r.experiment == experiment && r.series == series && r.at == at;
        self.rows.iter().find(is_it).map(|r| r.penalty)
    }

    /// Replaces what is known of the experiments in `rows`.
    pub(crate) fn replace(&mut self, rows: Vec<Tried>) {
        self.rows.retain(|old| !rows.iter().any(|new| new.experiment == old.experiment));
        self.rows.extend(rows);
    }

    /// In the form that [`Self::shipped`] reads.
    pub(crate) fn to_csv(&self) -> anyhow::Result<Vec<u8>> {
        let mut writer = csv::Writer::from_writer(vec![]);
        self.rows.iter().try_for_each(|r| writer.serialize(r))?;
        Ok(writer.into_inner()?)
    }
}
