//! From cells to encoded records, one record at a time — EQUATIONS §3, "what is enforced".
//!
//! Each rule looks at a single record and at public constants, so replacing one record of the file replaces at
//! most one encoded record. For a simulation or a score, a record that does not fit is dropped or is an error; at a real site either would
//! show in what others can see, the number of records or whether the site takes part, so there every row is a record, and one that does not
//! fit counts for nothing ([`Purpose::Site`]).

#![allow(clippy::float_cmp, reason = "what is meant is equality to the bit")]

use super::encoded::{Encoded, Sites, Unusable};
use super::look::{NumberLook, is_nearly_one_of, separator_of};
use super::{Column, ColumnKind, Label, MissingRule, RangeRule, Schema, SchemaError, UnknownRule, canonical};
use crate::data::Dataset;
use std::collections::BTreeSet;

/// What the records are wanted for, which decides the columns that the file must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Learning in a simulation: every column that the schema mentions. Records that do not fit are dropped or refused.
    Train,
    /// Learning at a real site: the same columns, and every row of the file is a record. One that does not fit, for whatever reason, is
    /// kept as a record of zeros ([`Dataset::push_empty`]), so neither the number of records nor any refusal depends on what a row says.
    Site,
    /// Scoring a model: the features and the label; site and ignored columns may be absent and are not read.
    Evaluate,
    /// Applying a model: only the features. A label column may be present and is not read; labels are 0.
    Predict,
}

impl Purpose {
    /// Whether something is learned from the records.
    fn is_training(self) -> bool {
        matches!(self, Self::Train | Self::Site)
    }
}

/// A cell as the caller's table holds it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'c> {
    /// What the table itself marks as missing.
    Missing,
    /// A text, as in a file.
    Text(&'c str),
    /// A text that the table knows by a small number. In one table and column, a number stands for one text.
    Coded(u32, &'c str),
    /// A number that was never text; it means what its shortest text would mean, and NaN is missing.
    Number(f64),
}

/// What one column of the file is for.
enum Role {
    Label,
    Site,
    Numeric { column: usize, slot: usize },
    Categorical { column: usize, slot: usize },
    Unread,
}

/// Encodes the records of one file, in file order.
pub struct Encoder<'s> {
    schema: &'s Schema,
    purpose: Purpose,
    roles: Vec<Role>,
    /// Columns of the file that the schema does not know.
    unlisted: Vec<String>,
    /// For each column of the schema: its texts in comparable form, sorted, with what each stands for.
    codes: Vec<Vec<(&'s str, u32)>>,
    /// For each column of the schema: what the table's codes have turned out to mean.
    known_codes: Vec<Vec<Option<u32>>>,
    /// For each column of the schema: numbers that stand for "missing" or "not measured".
    absent_numbers: Vec<Vec<(f64, MissingRule)>>,
    classes: Vec<(&'s str, f64)>,
    records: Dataset,
    sites: Option<Sites>,
    row_numbers: Vec<u64>,
    n_read: usize,
    n_dropped: usize,
    n_clipped: Vec<usize>,
    unusable: Vec<Unusable>,
    /// Hot columns of a record of zeros: the same for all of them, so that no record leaves a trace in another.
    no_hot: Vec<u32>,
    numeric: Vec<f64>,
    hot: Vec<u32>,
    clipped: Vec<usize>,
}

impl Schema {
    /// An encoder for a file with this header, wanted for training.
    pub fn encoder(&self, header: &[String]) -> Result<Encoder<'_>, SchemaError> {
        self.encoder_for(Purpose::Train, header)
    }

    /// An encoder for a file with this header.
    pub fn encoder_for(&self, purpose: Purpose, header: &[String]) -> Result<Encoder<'_>, SchemaError> {
        let (roles, unlisted) = self.roles(purpose, header)?;
        let features = self.feature_space();
        let mut codes = Vec::with_capacity(self.columns.len());
        let mut next = self.n_numeric() as u32;
        let mut no_hot = Vec::with_capacity(self.n_hot());
        for column in &self.columns {
            let mut column_codes = Vec::new();
            if let ColumnKind::Categorical { values, .. } = &column.kind {
                no_hot.push(next);
                column_codes.extend(values.iter().zip(next..).map(|(value, code)| (canonical(value), code)));
                next += values.len() as u32 + u32::from(self.on_unknown_category == UnknownRule::Other);
                column_codes.sort_unstable();
            }
            codes.push(column_codes);
        }
        let mut classes = Vec::new();
        if let Label::Binary { positive, negative, .. } = &self.label {
            classes.extend(positive.iter().map(|text| (canonical(text), 1.0)));
            classes.extend(negative.iter().map(|text| (canonical(text), -1.0)));
        }
        let names = |site: &super::Site| site.values.clone().unwrap_or_default();
        let sites = self.site.as_ref().filter(|_| purpose == Purpose::Train);
        no_hot.extend(features.intercept.map(|column| column as u32));
        Ok(Encoder {
            schema: self,
            purpose,
            roles,
            unlisted,
            codes,
            known_codes: vec![vec![]; self.columns.len()],
            absent_numbers: self.columns.iter().map(|column| self.absent_numbers(column)).collect(),
            classes,
            records: Dataset::new(features.n_features(), self.n_numeric(), self.n_hot(), self.norm_bound),
            sites: sites.map(|site| Sites { names: names(site), of_record: vec![] }),
            row_numbers: vec![],
            n_read: 0,
            n_dropped: 0,
            n_clipped: vec![0; self.columns.len()],
            unusable: vec![],
            numeric: vec![0.0; self.n_numeric()],
            hot: no_hot.clone(),
            no_hot,
            clipped: vec![],
        })
    }

    /// The listed texts of a column that are numbers, those that are filled first.
    fn absent_numbers(&self, column: &Column) -> Vec<(f64, MissingRule)> {
        let numbers = |texts: &[String], rule| {
            texts.iter().filter_map(|text| parse(canonical(text))).map(|v| (v, rule)).collect::<Vec<_>>()
        };
        let mut found = numbers(&column.fill_values, MissingRule::Fill);
        found.extend(numbers(&self.missing_values, self.missing));
        found.extend(numbers(&column.missing_values, self.missing));
        found
    }

    /// Gives every column of the file its role, and names those that the schema does not know; or says which are absent.
    fn roles(&self, purpose: Purpose, header: &[String]) -> Result<(Vec<Role>, Vec<String>), SchemaError> {
        let (mut numeric, mut hot) = (0, 0);
        let mut known: Vec<(&str, Role)> = Vec::with_capacity(self.columns.len() + 2);
        let label = if purpose == Purpose::Predict { Role::Unread } else { Role::Label };
        known.push((self.label.column(), label));
        if let Some(site) = &self.site {
            known.push((&site.column, if purpose.is_training() { Role::Site } else { Role::Unread }));
        }
        for (column, Column { name, kind, .. }) in self.columns.iter().enumerate() {
            let role = match kind {
                ColumnKind::Numeric { .. } => Role::Numeric { column, slot: numeric },
                ColumnKind::Categorical { .. } => Role::Categorical { column, slot: hot },
                ColumnKind::Ignored => Role::Unread,
            };
            numeric += usize::from(matches!(role, Role::Numeric { .. }));
            hot += usize::from(matches!(role, Role::Categorical { .. }));
            known.push((name, role));
        }
        // A file without a header has a record here, and the errors below would repeat its cells.
        let is_known = |name: &String| known.iter().any(|(known, _)| *known == name.trim());
        if let Some(separator) = separator_of(header) {
            return Err(SchemaError::Separator { separator });
        }
        let unknown: Vec<&String> = header.iter().filter(|name| !is_known(name)).collect();
        let is_meant = |known: &&str| {
            !header.iter().any(|name| name.trim() == *known)
                && unknown.iter().any(|name| is_nearly_one_of(name, [*known]))
        };
        let columns: Vec<String> =
            known.iter().map(|(known, _)| *known).filter(is_meant).map(str::to_owned).collect();
        if !columns.is_empty() {
            return Err(SchemaError::HeaderWriting { columns });
        }
        if !header.iter().any(is_known) || !looks_like_header(header) {
            return Err(SchemaError::NoHeader);
        }
        let mut seen = BTreeSet::new();
        if let Some(twice) = header.iter().find(|name| !seen.insert(name.trim())) {
            return Err(SchemaError::DuplicateHeader { column: twice.trim().to_owned() });
        }
        let mut unexpected = Vec::new();
        let mut roles = Vec::with_capacity(header.len());
        for name in header.iter().map(|name| name.trim()) {
            match known.iter().position(|(known, _)| *known == name) {
                Some(found) => roles.push(known.swap_remove(found).1),
                // What the schema does not know is not read, so nothing of it can leave.
                None => {
                    unexpected.push(name.to_owned());
                    roles.push(Role::Unread);
                }
            }
        }
        known.retain(|(_, role)| purpose.is_training() || !matches!(role, Role::Unread));
        if !known.is_empty() {
            let mut missing: Vec<String> = known.into_iter().map(|(name, _)| name.to_owned()).collect();
            missing.sort_unstable();
            return Err(SchemaError::Header { missing, unexpected });
        }
        Ok((roles, unexpected))
    }
}

/// Why a cell gives no value.
enum CellProblem {
    Missing,
    Error(SchemaError),
}

impl Encoder<'_> {
    /// Adds one record; `None` is a cell that the file format itself marks as missing. Tells whether the record
    /// counts: a missing cell in a column that is read drops it before anything else is said about it.
    ///
    /// After an error the encoder is as it was before the record, so a check can go on to the next one. For [`Purpose::Site`] there are
    /// no errors, and a record that does not count is a record of zeros.
    pub fn push_record<'c>(
        &mut self,
        row: u64,
        cells: impl IntoIterator<Item = Option<&'c str>>,
    ) -> Result<bool, SchemaError> {
        self.push_cells(row, cells.into_iter().map(|cell| cell.map_or(Cell::Missing, Cell::Text)))
    }

    /// The same for a table whose cells have types.
    pub fn push_cells<'c>(
        &mut self,
        row: u64,
        cells: impl IntoIterator<Item = Cell<'c>>,
    ) -> Result<bool, SchemaError> {
        match self.read(row, cells) {
            Ok((label, site)) => {
                self.n_read += 1;
                self.records.push(&self.numeric, &self.hot, label);
                self.row_numbers.push(row);
                if let (Some(sites), Some(index)) = (&mut self.sites, site) {
                    sites.of_record.push(index);
                }
                for &column in &self.clipped {
                    self.n_clipped[column] += 1;
                }
                Ok(true)
            }
            Err(problem) => self.push_unusable(row, problem),
        }
    }

    /// Decides about a record with a problem, of its cells or of the table that it is in: a missing cell drops it, anything else is an error; at
    /// a real site it is a record of zeros, and the problem is for the site's own eyes.
    pub fn push_unusable(&mut self, row: u64, problem: SchemaError) -> Result<bool, SchemaError> {
        let is_missing = matches!(problem, SchemaError::Missing { .. });
        if self.purpose != Purpose::Site && !is_missing {
            return Err(problem);
        }
        self.n_read += 1;
        self.n_dropped += usize::from(is_missing);
        if self.purpose == Purpose::Site {
            // The label is fixed too: the record's slope is multiplied by zero, so no other label would do anything else.
            let label = if self.schema.label.is_binary() { -1.0 } else { 0.0 };
            self.records.push_empty(&self.no_hot, label);
            self.row_numbers.push(row);
            Unusable::count(&mut self.unusable, problem);
        }
        Ok(false)
    }

    /// Reads a record into the encoder's memory, and gives back its label and site.
    fn read<'c>(
        &mut self,
        row: u64,
        cells: impl IntoIterator<Item = Cell<'c>>,
    ) -> Result<(f64, Option<u32>), SchemaError> {
        let (mut first_missing, mut first_error) = (None, None);
        let (mut label, mut site) = (0.0, None);
        let mut n_cells = 0;
        self.clipped.clear();
        for cell in cells {
            n_cells += 1;
            let Some(role) = self.roles.get(n_cells - 1) else { continue };
            if let (Role::Categorical { column, slot }, Cell::Coded(code, _)) = (role, cell)
                && let Some(&Some(hot)) = self.known_codes[*column].get(code as usize)
            {
                self.hot[*slot] = hot;
                continue;
            }
            let table_code = if let Cell::Coded(code, _) = cell { Some(code as usize) } else { None };
            let written;
            let (cell, number) = match cell {
                Cell::Missing => (None, None),
                Cell::Number(v) if v.is_nan() => (None, None),
                Cell::Text(text) | Cell::Coded(_, text) => (Some(canonical(text)), None),
                Cell::Number(v) if matches!(role, Role::Numeric { .. }) => (None, Some(v)),
                Cell::Number(v) => {
                    written = v.to_string();
                    (Some(written.as_str()), None)
                }
            };
            let result = match *role {
                Role::Unread => Ok(()),
                Role::Label => self.label(row, cell).map(|value| label = value),
                Role::Site => self.site(row, cell).map(|index| site = Some(index)),
                Role::Numeric { column, slot } => {
                    let value = match number {
                        Some(number) => self.typed_number(row, column, number),
                        None => self.number(row, column, cell),
                    };
                    value.map(|v| self.numeric[slot] = v)
                }
                Role::Categorical { column, slot } => self.code(row, column, cell).map(|hot| {
                    self.hot[slot] = hot;
                    if let Some(code) = table_code {
                        let known = &mut self.known_codes[column];
                        known.resize(known.len().max(code + 1), None);
                        known[code] = Some(hot);
                    }
                }),
            };
            match result {
                Ok(()) => {}
                Err(CellProblem::Missing) => first_missing = first_missing.or(Some(n_cells - 1)),
                Err(CellProblem::Error(error)) => first_error = first_error.or(Some(error)),
            }
        }
        if n_cells != self.roles.len() {
            return Err(SchemaError::Ragged { row, expected: self.roles.len(), found: n_cells });
        }
        match (first_missing, first_error) {
            (Some(place), _) => Err(SchemaError::Missing { row, column: self.name_of(place) }),
            (None, Some(error)) => Err(error),
            (None, None) => Ok((label, site)),
        }
    }

    /// Name of the file's column at a place where something is read.
    fn name_of(&self, place: usize) -> String {
        match (&self.roles[place], &self.schema.site) {
            (Role::Numeric { column, .. } | Role::Categorical { column, .. }, _) => {
                self.schema.columns[*column].name.clone()
            }
            (Role::Site, Some(site)) => site.column.clone(),
            _ => self.schema.label.column().to_owned(),
        }
    }

    /// Makes room for `n` more records.
    pub fn reserve(&mut self, n: usize) {
        self.records.reserve(n);
        self.row_numbers.reserve_exact(n);
    }

    /// All records that were pushed and kept.
    pub fn finish(self) -> Encoded {
        let numeric = |(column, n): (&Column, usize)| {
            matches!(column.kind, ColumnKind::Numeric { .. }).then(|| (column.name.clone(), n))
        };
        Encoded {
            records: self.records,
            features: self.schema.feature_space(),
            sites: self.sites,
            official_test: None,
            row_numbers: self.row_numbers,
            n_read: self.n_read,
            n_dropped: self.n_dropped,
            n_clipped: self.schema.columns.iter().zip(self.n_clipped).filter_map(numeric).collect(),
            unusable: self.unusable,
            unlisted: self.unlisted,
            label_column: self.schema.label.column().to_owned(),
            label_bounds: self.schema.label.bounds(),
        }
    }

    fn is_missing(&self, cell: &str) -> bool {
        self.schema.missing_values.iter().any(|missing| missing == cell)
    }

    /// A label cannot be filled, so a missing one drops the record under either rule.
    fn label(&self, row: u64, cell: Option<&str>) -> Result<f64, CellProblem> {
        let Some(cell) = cell.filter(|cell| !self.is_missing(cell)) else { return Err(CellProblem::Missing) };
        let column = || self.schema.label.column().to_owned();
        match &self.schema.label {
            Label::Binary { .. } => {
                let class = self.classes.iter().find(|(text, _)| *text == cell).map(|&(_, class)| class);
                class.ok_or_else(|| {
                    let is_nearly = is_nearly_one_of(cell, self.classes.iter().map(|(text, _)| *text));
                    CellProblem::Error(SchemaError::UnknownLabel { row, column: column(), is_nearly })
                })
            }
            &Label::Numeric { lower, upper, .. } => {
                let value = parse(cell).ok_or_else(|| {
                    let look = NumberLook::of(cell);
                    CellProblem::Error(SchemaError::NotANumber { row, column: column(), look })
                })?;
                if !(lower..=upper).contains(&value) && self.schema.on_out_of_range == RangeRule::Error {
                    return Err(CellProblem::Error(SchemaError::OutOfRange { row, column: column() }));
                }
                Ok(to_unit(value, lower, upper))
            }
        }
    }

    /// A site is named even if its record is dropped, so that a site left without records is noticed. A real site's file is
    /// of one site, so there nothing is named; only a listed name is still asked for.
    fn site(&mut self, row: u64, cell: Option<&str>) -> Result<u32, CellProblem> {
        let Some(cell) = cell.filter(|cell| !self.is_missing(cell)) else { return Err(CellProblem::Missing) };
        let Some(site) = &self.schema.site else { return Ok(0) };
        let unknown =
            || Err(CellProblem::Error(SchemaError::UnknownSite { row, column: site.column.clone() }));
        let Some(sites) = &mut self.sites else {
            let is_listed = |values: &Vec<String>| values.iter().any(|name| canonical(name) == cell);
            return if site.values.as_ref().is_none_or(is_listed) { Ok(0) } else { unknown() };
        };
        let known = sites.names.iter().position(|name| canonical(name) == cell);
        match (known, &site.values) {
            (Some(index), _) => Ok(index as u32),
            (None, Some(_)) => unknown(),
            (None, None) => {
                sites.names.push(cell.to_owned());
                Ok(sites.names.len() as u32 - 1)
            }
        }
    }

    /// Whether a cell takes the column's fill: `None` says that it has a value of its own.
    fn absent(&self, column: &Column, cell: Option<&str>) -> Option<MissingRule> {
        let listed = |list: &[String], cell: &str| list.iter().any(|text| canonical(text) == cell);
        match cell {
            Some(cell) if listed(&column.fill_values, cell) => Some(MissingRule::Fill),
            Some(cell) if !self.is_missing(cell) && !listed(&column.missing_values, cell) => None,
            _ => Some(self.schema.missing),
        }
    }

    fn number(&mut self, row: u64, index: usize, cell: Option<&str>) -> Result<f64, CellProblem> {
        let column = &self.schema.columns[index];
        let ColumnKind::Numeric { lower, upper, fill } = column.kind else {
            unreachable!("roles follow kinds")
        };
        let value = match (self.absent(column, cell), cell, fill) {
            (None, Some(cell), _) => {
                parse(cell).ok_or_else(|| not_a_number(row, column, NumberLook::of(cell)))?
            }
            (Some(MissingRule::Fill), _, Some(fill)) => fill,
            _ => return Err(CellProblem::Missing),
        };
        self.within(row, index, value, lower, upper)
    }

    /// The same for a cell that is a number already, other than NaN.
    fn typed_number(&mut self, row: u64, index: usize, number: f64) -> Result<f64, CellProblem> {
        let column = &self.schema.columns[index];
        let ColumnKind::Numeric { lower, upper, fill } = column.kind else {
            unreachable!("roles follow kinds")
        };
        let absent = self.absent_numbers[index].iter().find(|(listed, _)| *listed == number);
        let value = match (absent, fill) {
            (None, _) if number.is_finite() => number,
            (None, _) => return Err(not_a_number(row, column, NumberLook::Unclear)),
            (Some((_, MissingRule::Fill)), Some(fill)) => fill,
            _ => return Err(CellProblem::Missing),
        };
        self.within(row, index, value, lower, upper)
    }

    /// The value in units of its bounds; outside them the schema's rule decides.
    fn within(
        &mut self,
        row: u64,
        index: usize,
        value: f64,
        lower: f64,
        upper: f64,
    ) -> Result<f64, CellProblem> {
        if !(lower..=upper).contains(&value) {
            if self.schema.on_out_of_range == RangeRule::Error {
                let column = self.schema.columns[index].name.clone();
                return Err(CellProblem::Error(SchemaError::OutOfRange { row, column }));
            }
            self.clipped.push(index);
        }
        Ok(to_unit(value, lower, upper))
    }

    fn code(&self, row: u64, index: usize, cell: Option<&str>) -> Result<u32, CellProblem> {
        let column = &self.schema.columns[index];
        let ColumnKind::Categorical { values, fill } = &column.kind else {
            unreachable!("roles follow kinds")
        };
        let value = match (self.absent(column, cell), cell, fill) {
            (None, Some(cell), _) => cell,
            (Some(MissingRule::Fill), _, Some(fill)) => canonical(fill),
            _ => return Err(CellProblem::Missing),
        };
        let codes = &self.codes[index];
        match codes.binary_search_by_key(&value, |&(text, _)| text) {
            Ok(found) => Ok(codes[found].1),
            Err(_) if self.schema.on_unknown_category == UnknownRule::Other => {
                let first = codes.iter().map(|&(_, code)| code).min().unwrap_or_default();
                Ok(first + values.len() as u32)
            }
            Err(_) => {
                let is_nearly = is_nearly_one_of(value, values.iter().map(String::as_str));
                let column = column.name.clone();
                Err(CellProblem::Error(SchemaError::UnknownCategory { row, column, is_nearly }))
            }
        }
    }
}

fn not_a_number(row: u64, column: &Column, look: NumberLook) -> CellProblem {
    CellProblem::Error(SchemaError::NotANumber { row, column: column.name.clone(), look })
}

/// Whether a file's first row can be a header: no cell is empty and none is a number.
///
/// What is written about a header repeats its cells, which must not happen to a record.
pub fn looks_like_header(cells: &[String]) -> bool {
    !cells.is_empty()
        && cells.iter().all(|cell| !cell.trim().is_empty() && cell.trim().parse::<f64>().is_err())
}

fn parse(cell: &str) -> Option<f64> {
    cell.parse::<f64>().ok().filter(|value| value.is_finite())
}

/// `(value − lower)/(upper − lower)`, clipped to \[0, 1\].
pub(super) fn to_unit(value: f64, lower: f64, upper: f64) -> f64 {
    ((value - lower) / (upper - lower)).clamp(0.0, 1.0)
}
