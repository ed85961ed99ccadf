//! Whether a site answers alike on neighbouring files.
//!
//! What a site refuses before its gate is seen by those who wait for its answer, and no noise protects it. So whatever one record may
//! hold, a site must answer a plan the same way: accept it, or refuse it for a reason that does not lie in that record.

use crate::verdict::Check;

/// Two files that differ in one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeighbouringFiles {
    /// What the second has that the first has not.
    pub difference: &'static str,
    /// A file in which nothing is odd.
    pub first: Vec<u8>,
    /// The same with one record replaced.
    pub second: Vec<u8>,
}

impl NeighbouringFiles {
    /// Records of either file, which a plan has to state.
    pub const RECORDS: usize = 40;

    /// A schema with the strictest rules: everything that a schema can call an error is one.
    pub const SCHEMA: &'static str = r#"norm_bound = 1.0
intercept = true
missing = "drop"
missing_values = ["?"]
on_out_of_range = "error"
on_unknown_category = "error"
label = { column = "ill", kind = "binary", positive = ["yes"], negative = ["no"] }
columns = [
  { name = "age", kind = "numeric", lower = 0, upper = 100 },
  { name = "blood", kind = "categorical", values = ["A", "B", "O"] },
]
"#;
}

/// What those who wait for a site get to see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Whether it accepted the plan, which everybody sees.
    pub accepts: bool,
    /// What it would send: its signed word, and whatever it starts to send in a run.
    pub sends: Vec<u8>,
}

/// The record that is replaced.
const PLACE: usize = 7;

/// The pairs that are tried: each is something that a file of real records may hold.
pub fn neighbouring_files() -> Vec<NeighbouringFiles> {
    let ordinary = |i: usize| {
        let blood = ["A", "B", "O"][i % 3];
        format!("{},{blood},{}", 20 + 3 * (i % 25), if i.is_multiple_of(2) { "yes" } else { "no" })
    };
    let healthy = |i: usize| format!("{},A,no", 20 + i);
    let file = |row: &dyn Fn(usize) -> String, replaced: &[u8]| {
        let line = |i: usize| if i == PLACE { replaced.to_vec() } else { row(i).into_bytes() };
        let mut lines = vec![b"age,blood,ill".to_vec()];
        lines.extend((0..NeighbouringFiles::RECORDS).map(line));
        lines.push(vec![]);
        lines.join(&b'\n')
    };
    let pair = |difference, row: &dyn Fn(usize) -> String, usual: &[u8], odd: &[u8]| NeighbouringFiles {
        difference,
        first: file(row, usual),
        second: file(row, odd),
    };
    let odd = |difference, record: &[u8]| pair(difference, &ordinary, b"50,A,yes", record);
    vec![
        pair("one class instead of two", &healthy, b"50,A,yes", b"50,A,no"),
        odd("a missing number", b"?,A,yes"),
        odd("a missing category", b"50,?,yes"),
        odd("a missing label", b"50,A,?"),
        odd("a category that the schema does not list", b"50,AB,yes"),
        odd("a label that the schema does not list", b"50,A,perhaps"),
        odd("a number out of range", b"180,A,yes"),
        odd("a text in the place of a number", b"fifty,A,yes"),
        odd("not a number", b"NaN,A,yes"),
        odd("an infinite number", b"inf,A,yes"),
        odd("an empty cell", b",A,yes"),
        odd("a record with a cell too many", b"50,A,yes,1"),
        odd("a record with a cell too few", b"50,A"),
        odd("letters in another encoding than UTF-8", b"50,\xc4,yes"),
    ]
}

/// Asks for the answer to both files of every pair. The asker runs the program; an error is one of the asker's own.
pub fn refusals<E>(mut answer: impl FnMut(&[u8]) -> Result<Answer, E>) -> Result<Check, E> {
    let mut check = Check::passed();
    for pair in neighbouring_files() {
        let (first, second) = (answer(&pair.first)?, answer(&pair.second)?);
        let words = |answer: &Answer| if answer.accepts { "accepts" } else { "refuses" };
        if first.accepts != second.accepts {
            let difference = pair.difference;
            check.fail(format!(
                "a site {} an ordinary file and {} its neighbour, whose difference is {difference}",
                words(&first),
                words(&second),
            ));
        } else if first.sends != second.sends {
            check.fail(format!("what a site sends depends on {}", pair.difference));
        }
    }
    Ok(check)
}
