//! Records after encoding, and what a site should know about those that did not fit.

#![allow(clippy::float_cmp, reason = "what is meant is equality to the bit")]

use super::SchemaError;
use crate::data::{Dataset, FeatureSpace};

/// Said beside everything that is computed from records without noise.
pub const OWN_EYES: &str =
    "These numbers are computed from records and are not private: they are for this site's own eyes.";

/// Which site each record belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sites {
    /// Names of the sites. A site of which every record was dropped is still named here.
    pub names: Vec<String>,
    /// Index into `names` for each encoded record.
    pub of_record: Vec<u32>,
}

/// Encoded records with what is known about each.
#[derive(Clone, PartialEq)]
pub struct Encoded {
    /// Rows and labels as numbers, each row cut to the schema's norm bound.
    pub records: Dataset,
    /// Names and groups of the encoded columns.
    pub features: FeatureSpace,
    /// Sites, if the schema has a site column and the purpose was training.
    pub sites: Option<Sites>,
    /// For sets that were published in two parts: whether a record came from the published test file.
    pub official_test: Option<Vec<bool>>,
    /// Row of each record in its file; the header is row 1.
    pub row_numbers: Vec<u64>,
    /// Records that were read, those that were dropped included.
    pub n_read: usize,
    /// Records that the missing-value rule left out. Computed from records: for the site's own eyes only.
    pub n_dropped: usize,
    /// How many kept values of each numeric column were clipped. For the site's own eyes only.
    pub n_clipped: Vec<(String, usize)>,
    /// Why records count for nothing, one entry a problem and column; only at a real site. For the site's own eyes only.
    pub unusable: Vec<Unusable>,
    /// Columns of the file that the schema does not know, and that were not read.
    pub unlisted: Vec<String>,
    pub(super) label_column: String,
    pub(super) label_bounds: Option<(f64, f64)>,
}

/// A problem that some records have, which therefore count for nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable {
    /// The problem as the first of them has it; it names row and column and shows no cell.
    pub first: SchemaError,
    /// How many records have it.
    pub n_records: usize,
}

impl Unusable {
    /// Adds one more problem to those that are counted.
    pub(super) fn count(all: &mut Vec<Self>, problem: SchemaError) {
        Self::count_many(all, Self { first: problem, n_records: 1 });
    }

    fn count_many(all: &mut Vec<Self>, more: Self) {
        match all.iter_mut().find(|known| known.first.is_like(&more.first)) {
            Some(known) => known.n_records += more.n_records,
            None => all.push(more),
        }
    }
}

/// Counts only: a debug print must not show a record.
impl std::fmt::Debug for Encoded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Encoded({:?}, {} read, {} dropped)", self.records, self.n_read, self.n_dropped)
    }
}

impl Encoded {
    /// Whether labels are −1 and +1.
    pub fn label_is_binary(&self) -> bool {
        self.label_bounds.is_none()
    }

    /// The numbers that labels 0 and 1 stand for; `None` for two classes.
    pub fn label_bounds(&self) -> Option<(f64, f64)> {
        self.label_bounds
    }

    /// Adds the records of the table's next part, which another encoder of the same schema and header has read.
    ///
    /// Sites that only the part has come after the known ones, as if one encoder had met them in that order.
    pub fn append(&mut self, part: Self) {
        assert!(self.features == part.features, "the parts are encoded by one schema");
        self.records.append(&part.records);
        if let (Some(sites), Some(more)) = (&mut self.sites, part.sites) {
            let place = |name: String| {
                sites.names.iter().position(|known| *known == name).unwrap_or_else(|| {
                    sites.names.push(name);
                    sites.names.len() - 1
                }) as u32
            };
            let places: Vec<u32> = more.names.into_iter().map(place).collect();
            sites.of_record.extend(more.of_record.iter().map(|&site| places[site as usize]));
        }
        self.row_numbers.extend(part.row_numbers);
        self.n_read += part.n_read;
        self.n_dropped += part.n_dropped;
        for ((_, n), (_, more)) in self.n_clipped.iter_mut().zip(part.n_clipped) {
            *n += more;
        }
        part.unusable.into_iter().for_each(|more| Unusable::count_many(&mut self.unusable, more));
    }

    /// Refuses data from which nothing can be learned: no records that count, or a two-class label with one class. For simulations; a
    /// real site must not refuse what one record can change, and warns ([`Self::warnings`]).
    pub fn check_trainable(&self) -> Result<(), SchemaError> {
        let mut labels = self.records.rows().filter(|row| !row.is_empty()).map(|row| row.label);
        let Some(first) = labels.next() else {
            return Err(SchemaError::NoRecords { n_read: self.n_read, n_dropped: self.n_dropped });
        };
        let (mut n_records, mut both) = (1, false);
        for label in labels {
            n_records += 1;
            both |= label != first;
        }
        if self.label_is_binary() && !both {
            return Err(SchemaError::OneClass { column: self.label_column.clone(), n_records });
        }
        Ok(())
    }

    /// Records that count for nothing. Computed from records: for the site's own eyes only.
    pub fn n_unusable(&self) -> usize {
        self.unusable.iter().map(|problem| problem.n_records).sum()
    }

    /// Says which columns of the file are not read because the schema does not know them, if there are any. The same whatever records say.
    pub fn unlisted_note(&self) -> Option<String> {
        unlisted_note(&self.unlisted)
    }

    /// What a real site's people should know before they take part, in sentences that show no cell: how many rows count for nothing and why,
    /// and whether anything can be learned from the others. Computed from records: for the site's own eyes only.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::from_iter(self.unlisted_note());
        let (n_lost, n_rows) = (self.n_unusable(), self.n_read);
        if n_lost > 0 {
            let percent = (100 * n_lost).div_ceil(n_rows);
            let alarm = if 5 * n_lost >= n_rows { "MANY RECORDS ARE LOST: " } else { "" };
            warnings.push(format!(
                "{alarm}{n_lost} of {n_rows} rows ({percent} %) count for nothing: each is a record whose values are all zero"
            ));
        }
        for Unusable { first, n_records } in &self.unusable {
            let rows =
                if *n_records == 1 { "1 row".to_owned() } else { format!("{n_records} rows, the first") };
            warnings.push(format!("{rows}: {first}"));
        }
        match self.check_trainable() {
            Err(SchemaError::NoRecords { .. }) => warnings.push(format!(
                "NOTHING CAN BE LEARNED FROM THIS FILE: none of its {n_rows} rows fits the schema"
            )),
            Err(problem) => warnings.push(format!("LITTLE CAN BE LEARNED FROM THIS FILE: {problem}")),
            Ok(()) => {}
        }
        warnings
    }
}

/// See [`Encoded::unlisted_note`].
pub fn unlisted_note(unlisted: &[String]) -> Option<String> {
    let names = unlisted.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    (!unlisted.is_empty()).then(|| format!("not in the schema, and not read: {names}"))
}
