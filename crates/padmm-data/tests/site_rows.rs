//! At a real site every row of the file is a record: whatever one row says, the number of records stays, and so do all others.

use padmm_core::data::Dataset;
use padmm_data::{DataError, encode_site_file, parse_schema};
use proptest::prelude::*;
use std::path::Path;

const SCHEMA: &str = r#"
missing = "drop"
missing_values = ["?", ""]
on_out_of_range = "error"
on_unknown_category = "error"
label = { column = "ill", kind = "binary", positive = ["yes"], negative = ["no"] }
site = { column = "hospital", values = ["north"] }
columns = [
  { name = "age", kind = "numeric", lower = 18, upper = 90 },
  { name = "blood", kind = "categorical", values = ["A", "B", "O"] },
  { name = "note", kind = "ignored" },
]
"#;

fn encode(bytes: &[u8]) -> Result<padmm_core::schema::Encoded, DataError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    std::fs::write(&path, bytes).unwrap();
    encode_site_file(&path, &parse_schema(SCHEMA, Path::new("s")).unwrap())
}

fn file(rows: &[Vec<u8>], end: &str) -> Vec<u8> {
    let mut bytes = b"age,blood,note,hospital,ill".to_vec();
    for row in rows {
        bytes.extend(end.as_bytes());
        bytes.extend(row);
    }
    bytes
}

/// Everything that is kept of a record.
fn kept(records: &Dataset, r: usize) -> (Vec<u64>, Vec<u32>, u64, u64) {
    let row = records.row(r);
    let bits = row.numeric.iter().map(|v| v.to_bits()).collect();
    (bits, row.hot.to_vec(), row.scale.to_bits(), row.label.to_bits())
}

/// The text of a row: one that fits, one with a cell that does not, one that is missing something, and noise. Quotation marks are closed
/// where they are opened: one that is not makes everything up to the next one a single cell, and is no row.
fn row() -> impl Strategy<Value = Vec<u8>> {
    let number = prop_oneof![
        4 => (18..=90u8).prop_map(|v| v.to_string()),
        1 => Just("?".to_owned()),
        1 => Just(String::new()),
        1 => Just("17.9".to_owned()),
        1 => Just("NaN".to_owned()),
        1 => Just("1e999".to_owned()),
        1 => Just("forty".to_owned()),
        1 => Just("\"4\n0\"".to_owned()),
    ];
    let text = |usual: &'static [&'static str]| {
        prop_oneof![
            6 => prop::sample::select(usual).prop_map(str::to_owned),
            1 => Just("?".to_owned()),
            1 => "[a-z]{0,3}",
            1 => "\"[a-z,\n]{0,4}\"",
            1 => "[a-z]\"[a-z]?",
        ]
    };
    let cells =
        (number, text(&["A", "B", "O"]), text(&["", "x"]), text(&["north", "south"]), text(&["yes", "no"]));
    let whole = cells.prop_map(|(a, b, c, d, e)| [a, b, c, d, e].join(",").into_bytes());
    // A line without a single character is no row of a table with more than one column.
    let noise = prop::collection::vec(any::<u8>(), 1..30).prop_map(|bytes| {
        bytes.into_iter().map(|b| if matches!(b, b'\n' | b'\r' | b'"') { b',' } else { b }).collect()
    });
    prop_oneof![5 => whole, 1 => noise]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn replacing_a_row_replaces_one_record_and_never_changes_their_number(
        rows in prop::collection::vec(row(), 1..25),
        place in any::<prop::sample::Index>(),
        other in row(),
        end in prop::sample::select(&["\n", "\r\n"]),
    ) {
        let place = place.index(rows.len());
        let mut neighbour = rows.clone();
        neighbour[place] = other;
        let (a, b) = (encode(&file(&rows, end)).unwrap(), encode(&file(&neighbour, end)).unwrap());
        prop_assert_eq!((a.n_read, a.records.n_records()), (rows.len(), rows.len()));
        prop_assert_eq!((b.n_read, b.records.n_records()), (rows.len(), rows.len()));
        for r in (0..rows.len()).filter(|&r| r != place) {
            prop_assert_eq!(kept(&a.records, r), kept(&b.records, r), "row {} of {:?}", r + 2, rows);
        }
        for r in 0..rows.len() {
            let row = a.records.row(r);
            let square: f64 = row.numeric.iter().map(|v| v * v).sum::<f64>() + row.hot.len() as f64;
            prop_assert!(square.sqrt() * row.scale <= a.records.norm_bound());
        }
        prop_assert_eq!(a.n_unusable(), a.records.rows().filter(|row| row.is_empty()).count());
    }
}

#[test]
fn rows_of_every_kind_count_and_no_cell_is_repeated() {
    let rows: Vec<Vec<u8>> = [
        &b"40,A,x,north,yes"[..],
        b"41,B,x,north,no",
        b"SECRET,B,x,north,no",
        b"41,\xff\xfe,x,north,no",
        b"41,B,\xff,north,no",
        b"41",
        b"41,B,x,north,no,more",
        b" ",
        b"\0\0\0",
        b"?,?,?,?,?",
    ]
    .map(<[u8]>::to_vec)
    .to_vec();
    let data = encode(&file(&rows, "\n")).unwrap();
    assert_eq!((data.records.n_records(), data.n_unusable()), (10, 8));
    let said = data.warnings().join("\n");
    assert!(!said.contains("SECRET") && said.contains("2 rows, the first: row 5 is not UTF-8"), "{said}");
}

#[test]
fn what_is_not_about_a_record_is_still_refused() {
    for (text, says) in [
        (&b""[..], "empty"),
        (b"age,blood,note,hospital\n40,A,x,north\n", "lacks `ill`"),
        (b"age,blood,note,hospital,ill,\xff\n", "UTF-8"),
        (b"40,A,x,north,yes\n", "row 1"),
    ] {
        let error = encode(text).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    assert!(
        encode_site_file(Path::new("nowhere.csv"), &parse_schema(SCHEMA, Path::new("s")).unwrap()).is_err()
    );
    assert_eq!(encode(b"age,blood,note,hospital,ill\n").unwrap().records.n_records(), 0);
}

#[cfg(feature = "parquet")]
#[test]
fn bytes_that_are_no_text_and_dates_that_cannot_be_written_are_rows_too() {
    use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
    use parquet::file::writer::SerializedFileWriter;
    use std::sync::Arc;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let message =
        "message m { required binary c; required int64 day (TIMESTAMP(MILLIS,true)); required int32 y; }";
    let message = Arc::new(parquet::schema::parser::parse_message_type(message).unwrap());
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = SerializedFileWriter::new(file, message, Arc::default()).unwrap();
    let mut rows = writer.next_row_group().unwrap();
    let mut column = rows.next_column().unwrap().unwrap();
    let texts: Vec<ByteArray> = [&b"u"[..], b"\xff", b"u"].map(ByteArray::from).to_vec();
    column.typed::<ByteArrayType>().write_batch(&texts, None, None).unwrap();
    column.close().unwrap();
    let mut column = rows.next_column().unwrap().unwrap();
    column.typed::<Int64Type>().write_batch(&[0, 0, i64::MAX], None, None).unwrap();
    column.close().unwrap();
    let mut column = rows.next_column().unwrap().unwrap();
    column.typed::<Int32Type>().write_batch(&[1, 0, 0], None, None).unwrap();
    column.close().unwrap();
    rows.close().unwrap();
    writer.close().unwrap();
    let schema = r#"
label = { column = "y", kind = "binary", positive = [1], negative = [0] }
columns = [{ name = "c", kind = "categorical", values = ["u"] }, { name = "day", kind = "ignored" }]
"#;
    let data = encode_site_file(&path, &parse_schema(schema, Path::new("s")).unwrap()).unwrap();
    assert_eq!((data.records.n_records(), data.n_unusable()), (3, 2));
    let said = data.warnings().join("\n");
    assert!(said.contains("row 3, column `c`") && said.contains("row 4, column `day`"), "{said}");
}
