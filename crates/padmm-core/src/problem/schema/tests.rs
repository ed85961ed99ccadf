//! The rules of a schema, one by one, on records small enough to check by hand.

#![allow(clippy::float_cmp, reason = "what is meant is equality to the bit")]

use super::look::NumberLook;
use super::{Encoded, Encoder, Purpose, Schema, SchemaError, canonical};
use crate::loss::Loss;
use crate::model::{Model, Provenance};

const SCHEMA: &str = r#"
norm_bound = 1.0
intercept = true
missing = "fill"
on_unknown_category = "other"
label = { column = "y", kind = "numeric", lower = 0, upper = 10 }
site = { column = "where" }
columns = [
  { name = "colour", kind = "categorical", values = ["red", "blue"], fill = "blue" },
  { name = "size", kind = "numeric", lower = -1, upper = 3, fill = 1 },
  { name = "note", kind = "ignored" },
  { name = "code", kind = "categorical", values = [1, 2], fill = 2, missing_values = ["9"] },
]
"#;

const HEADER: [&str; 6] = ["note", "size", "colour", "y", "where", "code"];

fn schema(text: &str) -> Schema {
    toml::from_str(text).unwrap()
}

fn header(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn push(encoder: &mut Encoder<'_>, row: u64, line: &str) -> Result<bool, SchemaError> {
    encoder.push_record(row, line.split(',').map(Some))
}

fn encode(schema: &Schema, lines: &[&str]) -> Result<Encoded, SchemaError> {
    let mut encoder = schema.encoder(&header(&HEADER))?;
    for (row, line) in (2..).zip(lines) {
        push(&mut encoder, row, line)?;
    }
    Ok(encoder.finish())
}

#[test]
fn features_are_numeric_then_one_hot_then_intercept() {
    let features = schema(SCHEMA).feature_space();
    let names = [
        "size",
        "colour=red",
        "colour=blue",
        "colour=(other)",
        "code=1",
        "code=2",
        "code=(other)",
        "(intercept)",
    ];
    assert_eq!(features.names, names);
    assert_eq!(features.groups, [0..1, 1..4, 4..7]);
    assert_eq!(features.intercept, Some(7));
}

#[test]
fn a_record_is_scaled_by_public_bounds_and_to_the_norm_bound() {
    let data = encode(&schema(SCHEMA), &["x, 1 ,red,5,north,2.0", "x,99,green,12,south,1"]).unwrap();
    let first = data.records.row(0);
    assert_eq!((first.numeric, first.hot, first.label), (&[0.5][..], &[1, 5, 7][..], 0.5));
    assert!((first.scale - 1.0 / 3.25f64.sqrt()).abs() < 1e-14);
    let second = data.records.row(1);
    assert_eq!((second.numeric, second.hot, second.label), (&[1.0][..], &[3, 4, 7][..], 1.0));
    assert_eq!(data.n_clipped, [("size".to_owned(), 1)]);
    let sites = data.sites.unwrap();
    assert_eq!((sites.names, sites.of_record), (header(&["north", "south"]), vec![0, 1]));
}

#[test]
fn missing_cells_take_public_constants_but_a_missing_label_or_site_drops_the_record() {
    let data = encode(&schema(SCHEMA), &["x,?,NA,5,north,9", "x,1,red,?,south,1", "x,1,red,5,,1"]).unwrap();
    assert_eq!((data.n_read, data.n_dropped), (3, 2));
    let row = data.records.row(0);
    assert_eq!((row.numeric, row.hot), (&[0.5][..], &[2, 5, 7][..]));
    assert_eq!(data.sites.unwrap().names, ["north", "south"], "a site without records is still known");
}

#[test]
fn a_null_is_missing_whatever_its_text() {
    let schema = schema(&SCHEMA.replace("missing = \"fill\"", "missing = \"drop\"\nmissing_values = []"));
    let mut encoder = schema.encoder(&header(&HEADER)).unwrap();
    let cells = [Some("x"), None, Some("red"), Some("5"), Some("north"), Some("1")];
    assert_eq!(encoder.push_record(2, cells), Ok(false));
    assert!(
        push(&mut encoder, 3, "x,,red,5,north,1").is_err(),
        "an empty text is a value if nobody says otherwise"
    );
}

#[test]
fn sites_outside_the_list_are_an_error() {
    let text = SCHEMA.replace("column = \"where\"", "column = \"where\", values = [\"south\", \"north\"]");
    let data = encode(&schema(&text), &["x,1,red,5,north,1"]).unwrap();
    assert_eq!(data.sites.unwrap().of_record, [1]);
    let error = encode(&schema(&text), &["x,1,red,5,west,1"]).unwrap_err();
    assert_eq!(error, SchemaError::UnknownSite { row: 2, column: "where".to_owned() });
}

#[test]
fn after_an_error_the_encoder_goes_on_as_if_the_record_had_not_been() {
    let schema = schema(SCHEMA);
    let mut encoder = schema.encoder(&header(&HEADER)).unwrap();
    push(&mut encoder, 2, "x,1,red,5,north,1").unwrap();
    assert!(push(&mut encoder, 3, "x,99,red,five,north,1").is_err());
    assert!(push(&mut encoder, 4, "x,1,red").is_err());
    push(&mut encoder, 5, "x,1,red,6,north,1").unwrap();
    let data = encoder.finish();
    assert_eq!((data.n_read, data.records.n_records(), data.row_numbers), (2, 2, vec![2, 5]));
    assert_eq!(data.n_clipped, [("size".to_owned(), 0)]);
}

#[test]
fn only_training_needs_every_column() {
    let schema = schema(SCHEMA);
    let features = header(&["code", "colour", "size"]);
    assert!(schema.encoder_for(Purpose::Predict, &features).is_ok());
    let error = schema.encoder_for(Purpose::Evaluate, &features).err().unwrap();
    assert_eq!(error, SchemaError::Header { missing: header(&["y"]), unexpected: vec![] });
    let error = schema.encoder_for(Purpose::Train, &features).err().unwrap();
    assert_eq!(error, SchemaError::Header { missing: header(&["note", "where", "y"]), unexpected: vec![] });
}

#[test]
fn a_schema_survives_its_own_text() {
    let schema = schema(SCHEMA);
    assert_eq!(toml::from_str::<Schema>(&toml::to_string(&schema).unwrap()).unwrap(), schema);
    let json = serde_json::to_string(&schema).unwrap();
    assert_eq!(serde_json::from_str::<Schema>(&json).unwrap(), schema);
    assert!(serde_json::from_str::<Schema>(&json.replace("\"upper\":3.0", "\"upper\":-3.0")).is_err());
}

#[test]
fn a_model_speaks_in_the_labels_unit() {
    let schema = schema(SCHEMA);
    let data = encode(&schema, &["x,1,red,5,north,2"]).unwrap();
    let values = [2.0, 0.5, 9.0, 9.0, 9.0, 0.25, 9.0, -1.0];
    let provenance = Provenance { version: "0".into(), algorithm: "padmm".into(), output: "last".into() };
    let model = Model::new(schema, Loss::Huber { width: 0.1 }, &values, None, provenance).unwrap();
    let margin = model.margins(&data.records)[0];
    assert!((margin - 0.75 / 3.25f64.sqrt()).abs() < 1e-14, "(2 · 0.5 + 0.5 + 0.25 − 1) · scale");
    assert_eq!(model.predicted_number(0.3), Some(3.0));
    assert_eq!(model.probability(0.3), None);
}

#[test]
fn whole_numbers_lose_their_fraction_and_nothing_else() {
    for (text, expected) in [
        (" 1.0 ", "1"),
        ("-2.00", "-2"),
        ("3.", "3"),
        ("01", "01"),
        ("1.5", "1.5"),
        (".0", ".0"),
        ("I10.0", "I10.0"),
        ("<=50K.", "<=50K."),
    ] {
        assert_eq!(canonical(text), expected, "{text:?}");
    }
}

#[test]
fn a_typed_cell_means_what_its_text_means() {
    use super::Cell::{Coded, Missing, Number, Text};
    let text = SCHEMA.replace(
        "upper = 3, fill = 1 }",
        "upper = 3, fill = 1, fill_values = [\"0\"], missing_values = [\"-9\"] }",
    );
    let drops = text.replace("missing = \"fill\"", "missing = \"drop\"");
    for schema in [schema(&text), schema(&drops)] {
        let lines =
            ["x,0.25,red,5,a,1", "x,0,blue,0.5,a,2", "x,-9,red,1,b,9", "x,NA,red,2,b,3", "x,7.5,red,,b,1"];
        let typed = [
            [Missing, Number(0.25), Coded(1, "red"), Number(5.0), Coded(0, "a"), Number(1.0)],
            [Missing, Number(0.0), Coded(0, " blue "), Number(0.5), Coded(0, "a"), Text("2.0")],
            [Missing, Number(-9.0), Coded(1, "red"), Number(1.0), Coded(1, "b"), Number(9.0)],
            [Missing, Number(f64::NAN), Coded(1, "red"), Number(2.0), Text("b"), Number(3.0)],
            [Missing, Number(7.5), Text("red"), Missing, Text("b"), Coded(0, "1")],
        ];
        let mut encoder = schema.encoder(&header(&HEADER)).unwrap();
        for (row, cells) in (2..).zip(typed) {
            encoder.push_cells(row, cells).unwrap();
        }
        assert!(encoder.finish() == encode(&schema, &lines).unwrap());
    }
    let schema = schema(&text);
    let mut encoder = schema.encoder(&header(&HEADER)).unwrap();
    let infinite = [Missing, Number(f64::INFINITY), Text("red"), Number(5.0), Text("a"), Number(1.0)];
    let error = encoder.push_cells(2, infinite).unwrap_err();
    assert_eq!(
        error,
        SchemaError::NotANumber { row: 2, column: "size".to_owned(), look: NumberLook::Unclear }
    );
}

#[test]
fn a_row_of_a_matrix_is_encoded_as_its_line_in_a_file() {
    let text = "norm_bound = 0.7\nintercept = true\nlabel = { column = \"y\", kind = \"numeric\", lower = 0, upper = 1 }\n\
                columns = [{ name = \"a\", kind = \"numeric\", lower = -1, upper = 3 },\n\
                { name = \"b\", kind = \"numeric\", lower = 0, upper = 10 }]";
    let schema = schema(text);
    let mut encoder = schema.encoder(&header(&["a", "b", "y"])).unwrap();
    let mut matrix = schema.matrix_encoder().unwrap();
    let mut records = matrix.empty();
    for (row, [a, b]) in (2..).zip([[0.5, 7.0], [-4.0, 11.0], [3.0, 0.1]]) {
        encoder
            .push_record(
                row,
                [a.to_string(), b.to_string(), "0.25".to_owned()].iter().map(|c| Some(c.as_str())),
            )
            .unwrap();
        matrix.push(row, [a, b], 0.25, &mut records).unwrap();
    }
    assert!(encoder.finish().records == records);
    let wrong = |values: &[f64], strict: bool| {
        let text = if strict { format!("on_out_of_range = \"error\"\n{text}") } else { text.to_owned() };
        let schema = self::schema(&text);
        let mut matrix = schema.matrix_encoder().unwrap();
        let mut records = matrix.empty();
        matrix.push(5, values.iter().copied(), 0.0, &mut records).unwrap_err()
    };
    assert_eq!(
        wrong(&[f64::NAN, 1.0], false),
        SchemaError::NotANumber { row: 5, column: "a".to_owned(), look: NumberLook::Unclear }
    );
    assert_eq!(wrong(&[1.0, 11.0], true), SchemaError::OutOfRange { row: 5, column: "b".to_owned() });
    assert_eq!(wrong(&[1.0], false), SchemaError::Ragged { row: 5, expected: 2, found: 1 });
    assert!(self::schema(SCHEMA).matrix_encoder().is_err());
}

#[test]
fn parts_of_a_table_are_the_table() {
    let lines = [
        "x,1,red,5,north,2",
        "x,99,green,12,south,1",
        "x,0,red,1,east,9",
        "x,2,blue,NA,south,1",
        "x,-5,red,3,west,2",
    ];
    let schema = schema(SCHEMA);
    for cut in 1..lines.len() {
        let part = |first: usize, lines: &[&str]| {
            let mut encoder = schema.encoder(&header(&HEADER)).unwrap();
            for (row, line) in (first as u64 + 2..).zip(lines) {
                push(&mut encoder, row, line).unwrap();
            }
            encoder.finish()
        };
        let mut whole = part(0, &lines[..cut]);
        whole.append(part(cut, &lines[cut..]));
        assert!(whole == encode(&schema, &lines).unwrap(), "cut at {cut}");
    }
}

/// The schema of a site that is strict about everything.
fn strict() -> Schema {
    let text = SCHEMA
        .replace("missing = \"fill\"", "missing = \"drop\"\non_out_of_range = \"error\"")
        .replace("on_unknown_category = \"other\"", "on_unknown_category = \"error\"")
        .replace("column = \"where\"", "column = \"where\", values = [\"north\", \"south\"]");
    schema(&text)
}

#[test]
fn at_a_site_every_row_is_a_record_and_one_that_does_not_fit_counts_for_nothing() {
    let schema = strict();
    let mut encoder = schema.encoder_for(Purpose::Site, &header(&HEADER)).unwrap();
    let lines = [
        ("x,1,red,5,north,1", None),
        ("x,?,red,5,north,1", Some("row 3, column `size`: the cell is missing")),
        ("x,1,red,,north,1", Some("row 4, column `y`: the cell is missing")),
        ("x,1,red,5,,1", Some("row 5, column `where`: the cell is missing")),
        ("x,one,red,5,north,1", Some("row 6, column `size`: the cell is not a finite number")),
        ("x,99,red,5,north,1", Some("row 7, column `size`: the value is outside")),
        ("x,1,green,5,north,1", Some("row 8, column `colour`: the category")),
        ("x,1,red,11,north,1", Some("row 9, column `y`: the value is outside")),
        ("x,1,red,five,north,1", Some("row 10, column `y`: the cell is not a finite number")),
        ("x,1,red,5,west,1", Some("row 11, column `where`: the site")),
        ("x,1,red,5,north", Some("row 12 has 5 cells")),
        ("x,1,red,5,north,1,1", None),
        ("x,1,blue,6,south,2", None),
    ];
    for (row, (line, _)) in (2..).zip(lines) {
        push(&mut encoder, row, line).unwrap();
    }
    encoder.push_unusable(15, SchemaError::NotText { row: 15 }).unwrap();
    let data = encoder.finish();
    assert_eq!((data.n_read, data.records.n_records(), data.n_unusable()), (14, 14, 12));
    assert_eq!(data.row_numbers, (2..16).collect::<Vec<u64>>());
    let mut strict = schema.encoder(&header(&HEADER)).unwrap();
    push(&mut strict, 2, lines[0].0).unwrap();
    push(&mut strict, 14, lines[12].0).unwrap();
    let kept = strict.finish().records;
    for (r, row) in data.records.rows().enumerate() {
        if let Some(place) = [0, 12].iter().position(|&usable| usable == r) {
            let same = kept.row(place);
            assert_eq!((row.numeric, row.hot, row.scale), (same.numeric, same.hot, same.scale));
            assert_eq!(row.label, same.label);
        } else {
            let zeros = (&[0.0][..], &[1, 3, 5][..], 0.0, 0.0);
            assert_eq!((row.numeric, row.hot, row.scale, row.label), zeros, "row {}", r + 2);
        }
    }
    let warnings = data.warnings();
    assert!(warnings[0].contains("12 of 14 rows (86 %) count for nothing"), "{warnings:?}");
    assert!(warnings[0].starts_with("MANY RECORDS ARE LOST"), "{warnings:?}");
    for problem in lines.iter().filter_map(|(_, problem)| *problem).chain(["row 15 is not UTF-8"]) {
        assert!(warnings.iter().any(|warning| warning.contains(problem)), "{problem} in {warnings:#?}");
    }
    assert!(warnings.iter().any(|w| w.starts_with("2 rows, the first: row 12 has 5 cells")), "{warnings:#?}");
    assert!(data.sites.is_none() && data.n_dropped == 3);
}

#[test]
fn a_site_is_told_when_nothing_can_be_learned_and_is_not_refused() {
    let text = SCHEMA.replace(
        "kind = \"numeric\", lower = 0, upper = 10",
        "kind = \"binary\", positive = [1], negative = [0]",
    );
    let schema = schema(&text);
    let warnings = |lines: &[&str]| {
        let mut encoder = schema.encoder_for(Purpose::Site, &header(&HEADER)).unwrap();
        (2..).zip(lines).for_each(|(row, line)| assert!(push(&mut encoder, row, line).is_ok()));
        encoder.finish().warnings()
    };
    assert!(warnings(&["x,1,red,1,north,1", "x,1,red,0,north,1"]).is_empty());
    // A record of zeros has a label too, and it is no class of its own.
    let one = warnings(&["x,1,red,1,north,1", "x,1,red,maybe,north,1"]);
    assert!(one.last().is_some_and(|w| w.contains("all 1 records have the same class")), "{one:?}");
    let none = warnings(&["x,1,red,?,north,1"]);
    assert!(none.last().is_some_and(|w| w.starts_with("NOTHING CAN BE LEARNED")), "{none:?}");
    assert!(!warnings(&["x,1,red,1,north,1"; 4])[0].contains("count for nothing"));
}
