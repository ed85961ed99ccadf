//! Hot columns crossed with each other, so that loops over records have fewer indices to follow.
//!
//! Two categorical columns of few values are as good as one whose values are the pairs that occur. A weight of such a *cell* is
//! the sum of its columns' weights, and what is summed over a cell's records belongs to each of its columns. Of a
//! fifth of Adult's records, the eight categorical columns become two.
//!
//! Gain, of 9,000 records like Adult's: 26 % fewer instructions in a gradient, 17 % in a cold solve, 8 % in scoring. Up to 1,024
//! values in place of 256 made a run 5 % faster.

use std::sync::OnceLock;

/// Most cells of one crossed column: tables over them stay in the first-level cache.
pub(crate) const MOST_CELLS: usize = 1024;

/// Fewer records than this are not worth the tables.
pub(crate) const FEWEST_RECORDS: usize = 2048;

/// A cell has at least so many records on average, because every cell costs something too.
const RECORDS_PER_CELL: usize = 8;

/// The crossed columns of a set of records.
#[derive(Clone)]
pub(crate) struct CrossedColumns {
    /// How many there are, that is, indices a record has.
    n_crossed: usize,
    /// Each record's cells, one in each crossed column.
    cells: Vec<u32>,
    /// The hot columns of all cells, one cell after another.
    columns: Vec<u32>,
    /// Where the columns of each cell end.
    ends: Vec<u32>,
}

/// One crossed column in the making: how a record's cell follows from its hot columns, and the hot columns of each cell. Cells are looked
/// up again rather than kept, because of many records that would be as much memory as the records.
struct Slot {
    cells: Lookup,
    columns: Vec<Vec<u32>>,
}

enum Lookup {
    /// The cell of the hot column at this place of a record, by column.
    Column { place: usize, of_column: Vec<u32> },
    /// The cell of a pair of cells, row by row of the first.
    Pair { slots: Box<[Slot; 2]>, of_pair: Vec<u32> },
}

impl CrossedColumns {
    /// Joins the columns of records with `n_hot` indices each, as far as the cells stay few; `None` if none can be joined.
    fn of(hot: &[u32], n_hot: usize) -> Option<Self> {
        if n_hot < 2 || hot.len() / n_hot < FEWEST_RECORDS {
            return None;
        }
        let most_cells = (hot.len() / n_hot / RECORDS_PER_CELL).min(MOST_CELLS);
        let mut slots: Vec<Slot> = (0..n_hot).map(|k| Slot::of(hot, n_hot, k)).collect();
        // The smallest first, so that many small columns end in one.
        while let Some((a, b, pairs)) = pairs_by_size(&slots, most_cells)
            .find_map(|(a, b)| Some((a, b, slots[a].pairs(&slots[b], hot, n_hot, most_cells)?)))
        {
            // The second has the larger place, so the first stays where it is.
            let second = slots.remove(b);
            let first =
                std::mem::replace(&mut slots[a], Slot { cells: Lookup::NOWHERE, columns: pairs.columns });
            slots[a].cells = Lookup::Pair { slots: Box::new([first, second]), of_pair: pairs.of_pair };
        }
        let (n_crossed, n_records) = (slots.len(), hot.len() / n_hot);
        if n_crossed == n_hot {
            return None;
        }
        let mut cells = vec![0; n_crossed * n_records];
        let (mut columns, mut ends) = (vec![], vec![]);
        for (k, slot) in slots.iter().enumerate() {
            let first = ends.len() as u32;
            let of_records = hot.chunks_exact(n_hot).map(|hot| slot.cell(hot));
            cells
                .iter_mut()
                .skip(k)
                .step_by(n_crossed)
                .zip(of_records)
                .for_each(|(c, cell)| *c = first + cell);
            for cell in &slot.columns {
                columns.extend(cell);
                ends.push(columns.len() as u32);
            }
        }
        Some(Self { n_crossed, cells, columns, ends })
    }

    /// Number of crossed columns, that is, indices a record has.
    pub(crate) fn n_crossed(&self) -> usize {
        self.n_crossed
    }

    /// How many cells all crossed columns have together.
    pub(crate) fn n_cells(&self) -> usize {
        self.ends.len()
    }

    /// All records' cells, record by record.
    pub(crate) fn cells(&self) -> &[u32] {
        &self.cells
    }

    /// The hot columns of each cell, in the order of the cells' numbers.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &[u32]> {
        let mut start = 0;
        self.ends
            .iter()
            .map(move |&end| &self.columns[std::mem::replace(&mut start, end as usize)..end as usize])
    }

    /// Adds what was summed over each cell's records, times `weight`, to the cell's columns.
    pub(crate) fn fold(&self, sums: &[f64], weight: f64, out: &mut [f64]) {
        for (columns, sum) in self.columns().zip(sums) {
            columns.iter().for_each(|&j| out[j as usize] += weight * sum);
        }
    }
}

/// Pairs of slots that may have few enough cells together, those with the fewest first.
fn pairs_by_size(slots: &[Slot], most_cells: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
    let size = |s: usize| slots[s].columns.len();
    let fits = |&(a, b): &(usize, usize)| size(a).max(size(b)) <= most_cells;
    let mut pairs: Vec<(usize, usize)> =
        (0..slots.len()).flat_map(|b| (0..b).map(move |a| (a, b))).filter(fits).collect();
    pairs.sort_by_key(|&(a, b)| size(a) * size(b));
    pairs.into_iter()
}

/// The pairs of cells of two slots that occur.
struct Pairs {
    of_pair: Vec<u32>,
    columns: Vec<Vec<u32>>,
}

const ABSENT: u32 = u32::MAX;

impl Lookup {
    /// For as long as it is being put together.
    const NOWHERE: Self = Self::Column { place: 0, of_column: vec![] };
}

impl Slot {
    /// The cells of the hot index at one place: the columns that occur, in ascending order.
    fn of(hot: &[u32], n_hot: usize, place: usize) -> Self {
        let occurring = || hot.iter().skip(place).step_by(n_hot);
        let mut of_column = vec![ABSENT; occurring().max().map_or(0, |&j| j as usize + 1)];
        occurring().for_each(|&j| of_column[j as usize] = 0);
        let mut columns = vec![];
        for (j, cell) in of_column.iter_mut().enumerate().filter(|(_, cell)| **cell == 0) {
            *cell = columns.len() as u32;
            columns.push(vec![j as u32]);
        }
        Self { cells: Lookup::Column { place, of_column }, columns }
    }

    /// The cell of a record with these hot columns.
    fn cell(&self, hot: &[u32]) -> u32 {
        match &self.cells {
            Lookup::Column { place, of_column } => of_column[hot[*place] as usize],
            Lookup::Pair { slots, of_pair } => {
                let [a, b] = &**slots;
                of_pair[a.cell(hot) as usize * b.columns.len() + b.cell(hot) as usize]
            }
        }
    }

    /// Both together; `None` if more pairs occur than a crossed column may have.
    fn pairs(&self, other: &Self, hot: &[u32], n_hot: usize, most_cells: usize) -> Option<Pairs> {
        let width = other.columns.len();
        let mut of_pair = vec![ABSENT; self.columns.len() * width];
        let mut columns: Vec<Vec<u32>> = vec![];
        for hot in hot.chunks_exact(n_hot) {
            let (a, b) = (self.cell(hot) as usize, other.cell(hot) as usize);
            let number = &mut of_pair[a * width + b];
            if *number == ABSENT {
                if columns.len() == most_cells {
                    return None;
                }
                *number = columns.len() as u32;
                columns.push([&self.columns[a][..], &other.columns[b]].concat());
            }
        }
        Some(Pairs { of_pair, columns })
    }
}

/// The crossed columns of records, found when they are first asked for. They say nothing that the records do not, so sets compare
/// without them.
#[derive(Clone, Default)]
pub(super) struct OnDemand(OnceLock<Option<CrossedColumns>>);

impl OnDemand {
    pub(super) fn get(&self, hot: &[u32], n_hot: usize) -> Option<&CrossedColumns> {
        self.0.get_or_init(|| CrossedColumns::of(hot, n_hot)).as_ref()
    }

    /// Bytes that they take, if they were asked for.
    pub(super) fn memory_bytes(&self) -> usize {
        let found = self.0.get().and_then(Option::as_ref);
        found.map_or(0, |j| 4 * (j.cells.len() + j.columns.len() + j.ends.len()))
    }
}

impl PartialEq for OnDemand {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dataset;

    /// Records with independent columns of these numbers of values.
    fn records(values: &[u32], n: usize) -> Vec<u32> {
        let mut state = 7u64;
        let mut hot = vec![];
        for _ in 0..n {
            let mut first = 0;
            for &v in values {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                hot.push(first + (state >> 33) as u32 % v);
                first += v;
            }
        }
        hot
    }

    #[test]
    fn a_records_cells_have_exactly_its_columns() {
        let shapes =
            [&[2, 5, 7, 6, 300, 14, 16, 41][..], &[3, 3], &[1, 1, 1], &[100, 2, 200], &[256, 1, 257]];
        for (values, n) in
            shapes.into_iter().flat_map(|v| [FEWEST_RECORDS + 5, 9 * MOST_CELLS].map(|n| (v, n)))
        {
            let n_hot = values.len();
            let hot = records(values, n);
            let crossed = CrossedColumns::of(&hot, n_hot).unwrap();
            assert!(crossed.n_crossed() < n_hot);
            let most = (n / RECORDS_PER_CELL).min(MOST_CELLS);
            assert!(
                crossed.n_cells() <= crossed.n_crossed() * most.max(*values.iter().max().unwrap() as usize)
            );
            let columns_of: Vec<&[u32]> = crossed.columns().collect();
            for (cells, hot) in crossed.cells().chunks(crossed.n_crossed()).zip(hot.chunks(n_hot)) {
                let mut columns: Vec<u32> =
                    cells.iter().flat_map(|&c| columns_of[c as usize]).copied().collect();
                columns.sort_unstable();
                assert_eq!(columns, hot);
            }
        }
    }

    #[test]
    fn records_that_come_later_are_seen() {
        let hot = records(&[2, 3], FEWEST_RECORDS);
        let mut data = Dataset::new(6, 0, 2, 1.0);
        hot.chunks(2).for_each(|hot| data.push(&[], hot, 1.0));
        let before = data.clone();
        assert_eq!(data.crossed().map(|j| j.cells().len()), Some(FEWEST_RECORDS));
        assert!(data == before && data.memory_bytes() > before.memory_bytes());
        data.push(&[], &[1, 5], 1.0);
        assert_eq!(data.crossed().map(|j| j.cells().len()), Some(FEWEST_RECORDS + 1));
    }

    #[test]
    fn what_cannot_be_joined_or_is_too_small_stays() {
        assert!(CrossedColumns::of(&records(&[200, 200, 200], 20_000), 3).is_none());
        assert!(CrossedColumns::of(&records(&[2, 2], FEWEST_RECORDS - 1), 2).is_none());
        assert!(CrossedColumns::of(&records(&[2], 5000), 1).is_none());
        assert!(CrossedColumns::of(&[], 0).is_none());
    }
}
