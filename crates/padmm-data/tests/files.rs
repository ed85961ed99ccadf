//! Own files: both formats encode alike, and a check counts without showing anything.

use padmm_core::schema::{Purpose, Schema};
use padmm_data::{check_file, draft_schema, encode_file, parse_schema, read_schema};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files").join(name)
}

fn small_schema() -> Schema {
    read_schema(&file("small.schema.toml")).unwrap()
}

#[cfg(feature = "parquet")]
#[test]
fn csv_and_every_parquet_flavour_encode_alike() {
    let schema = small_schema();
    let csv = encode_file(&file("small.csv"), &schema, Purpose::Train).unwrap();
    assert_eq!((csv.n_read, csv.n_dropped), (12, 2));
    assert_eq!(csv.row_numbers, [2, 3, 5, 6, 8, 9, 10, 11, 12, 13]);
    assert_eq!(csv.n_clipped, [("age".to_owned(), 0), ("marker".to_owned(), 2)]);
    for flavour in ["none", "snappy", "zstd", "gzip", "lz4", "narrow"] {
        let path = file(&format!("small-{flavour}.parquet"));
        assert!(encode_file(&path, &schema, Purpose::Train).unwrap() == csv, "{flavour}");
    }
}

#[test]
fn a_file_without_label_can_be_scored() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new.csv");
    std::fs::write(&path, "smoker,age,marker,grade\nno,40,1,2\nyes,50,2,1\n").unwrap();
    let data = encode_file(&path, &small_schema(), Purpose::Predict).unwrap();
    assert_eq!(data.records.n_records(), 2);
    let error = encode_file(&path, &small_schema(), Purpose::Evaluate).unwrap_err().to_string();
    assert!(error.contains("`event`"), "{error}");
}

#[test]
fn rows_are_counted_as_a_person_counts_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.csv");
    let rows = |text: &str| {
        std::fs::write(&path, text).unwrap();
        encode_file(&path, &small_schema(), Purpose::Predict).unwrap().row_numbers
    };
    assert_eq!(rows("smoker,age,marker,grade\nno,40,1,2\nno,40,1,2\n"), [2, 3]);
    assert_eq!(rows("smoker,age,marker,grade\r\nno,40,1,2\r\nno,40,1,2\r\n"), [2, 3]);
    assert_eq!(rows("\u{feff}smoker,age,marker,grade\nno,40,1,2\n\n\nno,40,1,2"), [2, 5]);
    assert_eq!(rows("smoker,age,marker,grade\n\"n\no\",40,1,2\nno,40,1,2"), [2, 4]);
}

#[test]
fn a_check_counts_and_names_rows_and_columns() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checked.csv");
    let mut text = "patient,age,grade,marker,smoker,event\n".to_owned();
    text +=
        "a,40,1,99,no,true\nb,NA,1,1,no,false\nc,forty,1,1,no,false\nd,40,1,1,no,maybe\ne,40,1,1,no,false\n";
    std::fs::write(&path, text).unwrap();
    let report = check_file(&path, &small_schema()).unwrap();
    assert_eq!((report.n_records, report.n_usable, report.n_dropped, report.n_refused), (5, 2, 1, 2));
    assert_eq!(report.n_clipped, [("age".to_owned(), 0), ("marker".to_owned(), 1)]);
    let problems: Vec<String> = report.problems.iter().map(|p| p.first.to_string()).collect();
    assert!(problems[0].contains("row 4, column `age`") && !problems[0].contains("forty"), "{problems:?}");
    assert!(problems[1].contains("row 5, column `event`") && !problems[1].contains("maybe"), "{problems:?}");
}

#[test]
fn a_draft_reads_the_header_and_fails_until_it_is_filled_in() {
    let draft = draft_schema(&file("small.csv")).unwrap();
    let records = std::fs::read_to_string(file("small.csv")).unwrap();
    for cell in records.lines().skip(1).flat_map(|line| line.split(',')).filter(|cell| cell.len() > 4) {
        assert!(cell == "false" || !draft.contains(cell), "a draft holds no record");
    }
    let error = parse_schema(&draft, Path::new("draft.toml")).unwrap_err().to_string();
    assert!(error.contains("draft.toml") && error.contains("`positive` and `negative`"), "{error}");
    let filled = draft
        .replace("# positive = [?]", "positive = [\"true\"]")
        .replace("# negative = [?]", "negative = [\"false\"]")
        .replace("# values = [?]", "values = [\"yes\", \"no\"]")
        .replace("# upper = ?", "upper = 1");
    let error = parse_schema(&filled, Path::new("draft.toml")).unwrap_err().to_string();
    assert!(error.contains("`lower` and `upper`") && error.contains("public"), "{error}");
    let filled = filled.replace("# lower = ?", "lower = 0");
    parse_schema(&filled, Path::new("draft.toml")).unwrap();
}

const FIVE: &str = r#"
norm_bound = BOUND
intercept = true
missing = "fill"
on_unknown_category = "other"
label = { column = "y", kind = "numeric", lower = -5, upper = 5 }
columns = [
  { name = "a", kind = "numeric", lower = -1e3, upper = 1e3, fill = 0 },
  { name = "b", kind = "numeric", lower = 0, upper = 1e-3, fill = 0 },
  { name = "c", kind = "categorical", values = ["u", "v"], fill = "u" },
  { name = "d", kind = "ignored" },
]
"#;

proptest! {
    /// Whatever a file holds, no encoded row is longer than the bound, every record is kept, and values are in range.
    #[test]
    fn no_row_is_longer_than_the_bound(
        bound in prop_oneof![Just(0.01), Just(1.0), Just(1.7), Just(100.0)],
        rows in prop::collection::vec((any::<f64>(), -1e9f64..1e9, "[uvw?]", -1e6f64..1e6), 1..20),
    ) {
        let text = FIVE.replace("BOUND", &format!("{bound:?}"));
        let schema = parse_schema(&text, Path::new("five")).unwrap();
        let header = ["a", "b", "c", "d", "y"].map(str::to_owned);
        let mut encoder = schema.encoder(&header).unwrap();
        let mut n_kept = 0;
        for (row, (a, b, c, y)) in (2u64..).zip(&rows) {
            let cells = [a.to_string(), b.to_string(), c.clone(), String::new(), y.to_string()];
            match encoder.push_record(row, cells.iter().map(|cell| Some(cell.as_str()))) {
                Ok(kept) => { prop_assert!(kept); n_kept += 1 }
                Err(error) => {
                    prop_assert!(!a.is_finite());
                    prop_assert!(error.to_string().contains("column `a`"));
                }
            }
        }
        let data = encoder.finish();
        prop_assert_eq!(data.records.n_records(), n_kept);
        for row in data.records.rows() {
            let squares: f64 = row.numeric.iter().map(|v| (v * row.scale).powi(2)).sum();
            prop_assert!((squares + row.hot.len() as f64 * row.scale.powi(2)).sqrt() <= bound);
            prop_assert!(row.numeric.iter().chain([&row.label]).all(|v| (0.0..=1.0).contains(v)));
            prop_assert_eq!(row.hot[1], 5);
        }
    }
}
