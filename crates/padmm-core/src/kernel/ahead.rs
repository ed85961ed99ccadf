//! Asking for records before they are needed. A loop that computes for a while on a part of them leaves the memory idle meanwhile,
//! and then waits for the next part.

use std::ops::Range;

use super::Shape;
use crate::data::{Columns, Dataset};

/// Records of fewer bytes are in a cache that is near enough.
const FAR: usize = 8 << 20;

/// Rows of more numbers are asked for by the machine itself while they are read.
const WIDE: usize = 128;

/// How this machine asks for the records of one set; nothing where it cannot, or where it would not help. It changes nothing but the
/// time that they take.
#[derive(Clone, Copy)]
pub(super) struct Ahead {
    #[cfg(target_arch = "x86_64")]
    machine: Option<pulp::x86::V3>,
}

#[cfg(target_arch = "x86_64")]
impl Ahead {
    pub(super) fn of(data: &Dataset) -> Self {
        let is_far = data.pass_bytes() > FAR && data.stride() <= WIDE;
        Ahead { machine: is_far.then(pulp::x86::V3::try_new).flatten() }
    }

    /// Asks for records `range` of `columns`, as far as they are there. More than some twenty lines of memory at once would have
    /// to wait for each other.
    #[inline(always)]
    pub(super) fn ask(self, shape: Shape, columns: &Columns<'_>, range: Range<usize>) {
        let Some(machine) = self.machine else { return };
        let Range { start, end } = range.start..range.end.min(columns.labels.len());
        if start >= end {
            return;
        }
        let lines = |values: &[f64]| {
            for line in values.as_chunks::<8>().0 {
                machine.sse._mm_prefetch::<3>(line.as_ptr().cast());
            }
        };
        lines(&columns.numeric[start * shape.stride()..end * shape.stride()]);
        lines(&columns.scale[start..end]);
        lines(&columns.labels[start..end]);
        for line in columns.hot[start * shape.n_hot..end * shape.n_hot].as_chunks::<16>().0 {
            machine.sse._mm_prefetch::<3>(line.as_ptr().cast());
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl Ahead {
    pub(super) fn of(_: &Dataset) -> Self {
        Ahead {}
    }

    #[inline(always)]
    pub(super) fn ask(self, _: Shape, _: &Columns<'_>, _: Range<usize>) {}
}
