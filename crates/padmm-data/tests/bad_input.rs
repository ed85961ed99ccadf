//! Every bad input is one paragraph that names the file and the place, and shows no record.

use padmm_core::loss::Loss;
use padmm_core::model::{Model, Provenance};
use padmm_core::privacy_noise::PrivacyNoise;
use padmm_core::schema::Purpose;
use padmm_data::{
    DataError, Source, encode_file, load, parse_schema, read_model, read_schema, shipped_set, write_model,
};
use std::path::{Path, PathBuf};

const SCHEMA: &str = r#"
on_out_of_range = "error"
label = { column = "ill", kind = "binary", positive = ["yes"], negative = ["no"] }
columns = [
  { name = "age", kind = "numeric", lower = 18, upper = 90 },
  { name = "blood", kind = "categorical", values = ["A", "B", "AB", "O"] },
]
"#;

/// Writes a table and its schema, loads them, and gives back the error text.
fn error_of(file: &str, table: &[u8], schema: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(file);
    std::fs::write(&path, table).unwrap();
    let schema_path = folder.path().join("schema.toml");
    std::fs::write(&schema_path, schema).unwrap();
    let error = load(&Source::File { path, schema: schema_path }).unwrap_err().to_string();
    assert!(!error.contains('\n'), "one paragraph: {error}");
    assert!(!error.contains("SECRET"), "no cell is shown: {error}");
    error
}

fn assert_names(error: &str, parts: &[&str]) {
    for part in parts {
        assert!(error.contains(part), "`{part}` is not in: {error}");
    }
}

#[test]
fn tables_that_do_not_fit() {
    let cases: &[(&str, &[&str])] = &[
        ("", &["t.csv", "empty"]),
        (" \n\n", &["t.csv", "empty"]),
        ("age,blood,ill\n", &["t.csv", "no records"]),
        ("age,blood\n40,A\n", &["t.csv", "lacks `ill`"]),
        // What the schema does not know is not read.
        ("age,blood,ill,weight\n40,A,no,heavy\n", &["same class"]),
        ("age,Blood,ill\n", &["`blood`", "capital letters"]),
        ("age,group,ill\n", &["lacks `blood`", "has `group`", "does not mention"]),
        ("age,blood,ill,age\n", &["two columns named `age`"]),
        ("SECRET,SECRET2,no\n40,A,no\n", &["row 1", "header"]),
        ("40,SECRET,ill\n", &["row 1", "header"]),
        ("age;blood;ill\n40;A;no\n", &["semicolons", "commas"]),
        ("age,blood,ill\n40,A,no\nSECRET,B,yes\n", &["t.csv", "row 3", "`age`", "number"]),
        ("age,blood,ill\n40,A,no\nNaN,B,yes\n", &["row 3", "`age`", "finite"]),
        ("age,blood,ill\ninf,B,yes\n", &["row 2", "`age`", "finite"]),
        ("age,blood,ill\n40,A,no\n17.5,B,yes\n", &["row 3", "`age`", "bounds", "clip"]),
        ("age,blood,ill\n40,SECRET,no\n", &["row 2", "`blood`", "category", "other"]),
        ("age,blood,ill\n40,A,SECRET\n", &["row 2", "`ill`", "label"]),
        ("age,blood,ill\n40,A,no\n50,B,no\n", &["`ill`", "same class"]),
        ("age,blood,ill\n?,A,no\n50,,no\n", &["no records", "2 of them dropped"]),
        ("age,blood,ill\n40,A,no\n40,SECRET,A,no\n", &["row 3", "4 cells", "has 3"]),
        ("age,blood,ill\n40,A\n", &["row 2", "2 cells", "has 3"]),
    ];
    for (table, parts) in cases {
        assert_names(&error_of("t.csv", table.as_bytes(), SCHEMA), parts);
    }
}

#[test]
fn a_missing_cell_drops_the_record_before_anything_else_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    std::fs::write(&path, "age,blood,ill\n999,?,unheard-of\n40,A,no\n50,O,yes\n").unwrap();
    let schema = parse_schema(SCHEMA, Path::new("s")).unwrap();
    let data = encode_file(&path, &schema, Purpose::Train).unwrap();
    assert_eq!((data.n_read, data.n_dropped), (3, 1));
}

#[test]
fn files_that_cannot_be_read() {
    let text = b"age,blood,ill\n40,A,no\n";
    assert_names(&error_of("t.xlsx", text, SCHEMA), &["t.xlsx", ".csv or .parquet"]);
    assert_names(
        &error_of("t.csv", b"age,blood,ill\n40,A,no\n41,\xff\xfe,no\n", SCHEMA),
        &["t.csv", "row 3", "UTF-8"],
    );
    let source = Source::File { path: PathBuf::from("nowhere.csv"), schema: PathBuf::from("nowhere.toml") };
    assert_names(&load(&source).unwrap_err().to_string(), &["cannot read nowhere.toml"]);
    let schema = parse_schema(SCHEMA, Path::new("s")).unwrap();
    let error = encode_file(Path::new("nowhere.csv"), &schema, Purpose::Train).unwrap_err();
    assert_names(&error.to_string(), &["cannot read nowhere.csv", "check the path"]);
    let error = load(&Source::Shipped("adlut".to_owned())).unwrap_err().to_string();
    assert_names(&error, &["`adlut`", "adult", "heart"]);
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_files_that_are_damaged() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files");
    let schema = std::fs::read_to_string(folder.join("small.schema.toml")).unwrap();
    assert_names(&error_of("t.parquet", b"", &schema), &["t.parquet", "empty"]);
    assert_names(&error_of("t.parquet", b"age,blood\n1,2\n", &schema), &["t.parquet", "Parquet"]);
    let nested = std::fs::read(folder.join("nested.parquet")).unwrap();
    assert_names(&error_of("t.parquet", &nested, &schema), &["t.parquet", "`visits`", "lists"]);
    let whole = std::fs::read(folder.join("small-snappy.parquet")).unwrap();
    for keep in [4, whole.len() / 2, whole.len() - 1] {
        assert_names(&error_of("t.parquet", &whole[..keep], &schema), &["t.parquet", "Parquet"]);
    }
    // A changed byte may go unnoticed; it must not bring the program down.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let schema = parse_schema(&schema, Path::new("s")).unwrap();
    for place in (0..whole.len()).step_by(7) {
        let mut bytes = whole.clone();
        bytes[place] ^= 0x55;
        std::fs::write(&path, bytes).unwrap();
        let _ = encode_file(&path, &schema, Purpose::Train);
    }
}

#[test]
fn schemas_that_contradict_themselves() {
    let cases: &[(&str, &str, &[&str])] = &[
        ("lower = 18", "lower = 95", &["`age`", "below"]),
        ("lower = 18, ", "", &["`age`", "`lower` and `upper`", "public"]),
        ("lower = 18", "lower = nan", &["`age`", "finite"]),
        ("upper = 90", "upper = 90, values = [1]", &["`age`", "`values`"]),
        ("upper = 90", "upper = 90, fill = 7", &["`age`", "`fill`"]),
        ("upper = 90", "upper = 90, fill_values = [0]", &["`age`", "`fill_values`"]),
        ("upper = 90", "uper = 90", &["line 5", "uper"]),
        ("\"AB\"", "\"A\"", &["`blood`", "twice"]),
        ("\"AB\"", "\"NA\"", &["`blood`", "missing"]),
        (r#"["A", "B", "AB", "O"]"#, "[]", &["`blood`", "`values`"]),
        ("name = \"blood\"", "name = \"age\"", &["`age`", "twice"]),
        ("kind = \"numeric\"", "kind = \"number\"", &["`age`", "\"numeric\""]),
        ("kind = \"binary\", ", "", &["`ill`", "`kind`"]),
        ("negative = [\"no\"]", "negative = [\"yes\"]", &["`ill`", "twice"]),
        ("column = \"ill\", ", "", &["`label`", "`column`"]),
        ("on_out_of_range = \"error\"", "norm_bound = 0", &["`norm_bound`", "positive"]),
        ("on_out_of_range = \"error\"", "missing = \"fill\"", &["`age`", "`fill`"]),
        ("on_out_of_range = \"error\"", "on_out_of_range = \"ignore\"", &["line 2", "clip"]),
        ("columns = [", "columns = [[", &["s.toml", "line"]),
    ];
    for (from, to, parts) in cases {
        assert!(SCHEMA.contains(from), "{from}");
        let error = parse_schema(&SCHEMA.replacen(from, to, 1), Path::new("s.toml")).unwrap_err().to_string();
        assert_names(&error, &["s.toml"]);
        assert_names(&error, parts);
    }
    let nothing = "label = { column = \"y\", kind = \"binary\", positive = [1], negative = [0] }";
    assert_names(
        &parse_schema(nothing, Path::new("s.toml")).unwrap_err().to_string(),
        &["nothing to learn from"],
    );
    assert!(matches!(read_schema(Path::new("nowhere.toml")), Err(DataError::Read { .. })));
}

fn model() -> Model {
    let schema = shipped_set("heart").unwrap().schema();
    let values: Vec<f64> = (0..19).map(|j| (j as f64 * 0.7).sin() / 3.0).collect();
    let provenance =
        Provenance { version: "0.1.0".into(), algorithm: "padmm".into(), output: "smoothed".into() };
    Model::new(schema, Loss::Logistic, &values, Some(serde_json::json!({"epsilon_exact": 5.0})), provenance)
        .unwrap()
}

#[test]
fn a_model_comes_back_bit_for_bit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.json");
    write_model(&path, &model(), false).unwrap();
    assert_eq!(read_model(&path).unwrap(), model());
    assert!(matches!(write_model(&path, &model(), false), Err(DataError::Exists { .. })));
}

#[test]
fn models_that_are_cut_short_or_altered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.json");
    let text = model().to_json();
    let error_of = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let error = read_model(&path).unwrap_err().to_string();
        assert!(error.contains("model.json") && !error.contains('\n'), "{error}");
        error
    };
    for keep in [0, 1, text.len() / 2, text.len() - 2] {
        assert_names(&error_of(&text.as_bytes()[..keep]), &["not a complete padmm model", "copy it again"]);
    }
    assert_names(&error_of(text.replace("padmm-model/1", "padmm-model/9").as_bytes()), &["padmm-model/9"]);
    let renamed = text.replacen("\"name\": \"sex=0\"", "\"name\": \"sex=2\"", 1);
    assert_names(&error_of(renamed.as_bytes()), &["coefficient 6", "`sex=0`"]);
    let huge = text.replacen("\"value\": 0.0", "\"value\": 1e999", 1);
    assert_ne!(huge, text);
    error_of(huge.as_bytes());
    error_of(b"\xff{}");
    let values = [f64::NAN; 19];
    let error =
        Model::new(model().schema().clone(), Loss::Logistic, &values, None, model().provenance().clone());
    assert_names(&error.unwrap_err().to_string(), &["`age`", "finite"]);
    let noise = |standard_deviations| PrivacyNoise { standard_deviations, covariance: None };
    let told = model().with_privacy_noise(Some(noise(vec![0.5; 19]))).unwrap();
    assert_eq!(Model::from_json(&told.to_json()).unwrap(), told);
    for wrong in [vec![0.5; 18], vec![-0.5; 19]] {
        let error = model().with_privacy_noise(Some(noise(wrong))).unwrap_err().to_string();
        assert_names(&error, &["privacy_noise", "19 standard deviations"]);
    }
    let mut altered: serde_json::Value = serde_json::from_str(&told.to_json()).unwrap();
    altered["privacy_noise"]["standard_deviations"][3] = (-0.5).into();
    assert_names(&error_of(altered.to_string().as_bytes()), &["privacy_noise"]);
    let error = Model::new(model().schema().clone(), Loss::Logistic, &[], None, model().provenance().clone());
    assert_names(&error.unwrap_err().to_string(), &["0 coefficients", "19 columns"]);
}
