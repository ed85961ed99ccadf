//! The same records as CSV and as Parquet give the same encoded records, whatever they hold.
#![cfg(feature = "parquet")]

use padmm_core::schema::Purpose;
use padmm_data::{encode_file, parse_schema};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;

const SCHEMA: &str = r#"
missing = "drop"
on_unknown_category = "other"
label = { column = "y", kind = "binary", positive = [1], negative = [0] }
columns = [
  { name = "x", kind = "numeric", lower = -10, upper = 10 },
  { name = "c", kind = "categorical", values = ["u", "é"] },
]
"#;

/// One record: a number that may be missing, a text that may be missing, a class.
type Record = (Option<f64>, Option<String>, bool);

fn write_csv(path: &Path, records: &[Record]) {
    let mut text = "x,c,y\n".to_owned();
    for (x, c, y) in records {
        let x = x.map(|x| x.to_string()).unwrap_or_default();
        text += &format!("{x},{},{}\n", c.as_deref().unwrap_or_default(), u8::from(*y));
    }
    std::fs::write(path, text).unwrap();
}

fn write_parquet(path: &Path, records: &[Record]) {
    let message = "message m { optional double x; optional binary c (UTF8); required int32 y; }";
    let schema = Arc::new(parse_message_type(message).unwrap());
    let file = std::fs::File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(WriterProperties::default())).unwrap();
    for group in records.chunks(7) {
        let mut rows = writer.next_row_group().unwrap();
        let levels: Vec<i16> = group.iter().map(|r| i16::from(r.0.is_some())).collect();
        let values: Vec<f64> = group.iter().filter_map(|r| r.0).collect();
        let mut column = rows.next_column().unwrap().unwrap();
        column.typed::<DoubleType>().write_batch(&values, Some(&levels), None).unwrap();
        column.close().unwrap();
        let levels: Vec<i16> = group.iter().map(|r| i16::from(r.1.is_some())).collect();
        let values: Vec<ByteArray> =
            group.iter().filter_map(|r| r.1.as_deref().map(ByteArray::from)).collect();
        let mut column = rows.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None).unwrap();
        column.close().unwrap();
        let values: Vec<i32> = group.iter().map(|r| i32::from(r.2)).collect();
        let mut column = rows.next_column().unwrap().unwrap();
        column.typed::<Int32Type>().write_batch(&values, None, None).unwrap();
        column.close().unwrap();
        rows.close().unwrap();
    }
    writer.close().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn both_formats_encode_alike(
        records in prop::collection::vec(
            (prop::option::of(prop_oneof![-20.0..20.0f64, prop::num::f64::NORMAL]), prop::option::of("[uvé]{1,2}"), any::<bool>()),
            1..30,
        ),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (csv, parquet) = (folder.path().join("t.csv"), folder.path().join("t.parquet"));
        write_csv(&csv, &records);
        write_parquet(&parquet, &records);
        let schema = parse_schema(SCHEMA, Path::new("s")).unwrap();
        let by_csv = encode_file(&csv, &schema, Purpose::Train).unwrap();
        prop_assert_eq!(by_csv.n_read, records.len());
        prop_assert!(by_csv == encode_file(&parquet, &schema, Purpose::Train).unwrap());
    }
}
