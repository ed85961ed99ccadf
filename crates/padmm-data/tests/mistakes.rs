//! What people get wrong with their first file, and the one sentence by which they mend it.

use std::path::{Path, PathBuf};

use padmm_data::{check_file, draft_schema, parse_schema};
use tempfile::TempDir;

const SCHEMA: &str = r#"
label = { column = "ill", kind = "binary", positive = ["yes"], negative = ["no"] }
columns = [
  { name = "age", kind = "numeric", lower = 0, upper = 120 },
  { name = "sex", kind = "categorical", values = ["F", "M"] },
  { name = "bmi", kind = "numeric", lower = 10, upper = 70 },
]
"#;

fn written(name: &str, text: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

/// All that is said about a file: an error, or the problems of its records.
fn said(name: &str, text: &str) -> Vec<String> {
    let (_folder, path) = written(name, text);
    let schema = parse_schema(SCHEMA, Path::new("schema.toml")).unwrap();
    match check_file(&path, &schema) {
        Err(error) => vec![error.to_string()],
        Ok(report) => {
            let all = report.problems.iter().chain(&report.missing);
            let all = all.map(|problem| format!("{}x {}", problem.n_records, problem.first));
            all.chain(report.untrainable.iter().map(ToString::to_string)).collect()
        }
    }
}

/// One sentence for each mistake, however many rows have it, which names the place and says what to do, and quotes no cell.
#[test]
fn each_mistake_gives_one_sentence() {
    let cases: &[(&str, &str, &[&str])] = &[
        (
            "age;sex;bmi;ill\n54;F;22,5;yes\n61;M;30,1;no\n",
            "semicolons",
            &["separated by semicolons", "commas"],
        ),
        ("age\tsex\tbmi\till\n54\tF\t22.5\tyes\n", "tabs", &["separated by tabs"]),
        (
            "age,sex,bmi,ill\n54,F,\"22,5\",yes\n61,M,\"30,1\",no\n",
            "decimal commas",
            &["2x row 2, column `bmi`", "comma", "decimal point"],
        ),
        (
            "age,sex,bmi,ill\n54,f,22.5,yes\n61,m,30.1,no\n",
            "capital letters of categories",
            &["2x row 2, column `sex`", "capital letters", "write it alike"],
        ),
        (
            "age,sex,bmi,ill\n54,F,22.5,Yes\n61,M,30.1,No\n",
            "capital letters of labels",
            &["2x row 2, column `ill`", "capital letters"],
        ),
        (
            "AGE,SEX,BMI,ILL\n54,F,22.5,yes\n",
            "capital letters of the header",
            &["`age`, `sex`, `bmi`", "write them alike"],
        ),
        (
            "age,sex,bmi,ill\n1970-01-02,F,22.5,yes\n02.03.1961,M,30.1,no\n",
            "dates",
            &["2x row 2, column `age`", "it is a date", "age in years"],
        ),
        (
            "age,sex,bmi,ill\n54,F,22.5 kg/m2,yes\n61,M,30.1kg/m2,no\n",
            "units",
            &["2x row 2, column `bmi`", "unit", "keep the number alone"],
        ),
        (
            "age,sex,bmi,ill\n54,F,22.5,yes\n61,M,30.1,perhaps\n40,M,30.1,no\n",
            "three classes",
            &["1x row 3, column `ill`", "neither `positive` nor `negative`"],
        ),
        (
            "age,age,sex,bmi,ill\n1,54,F,22.5,yes\n",
            "two columns of one name",
            &["two columns named `age`", "rename"],
        ),
        ("age,sex,bmi\n54,F,22.5\n", "no label", &["lacks `ill`"]),
        ("name,town\nx,y\n", "another file", &["header", "none of the schema's column names"]),
        ("54,F,22.5,yes\n61,M,30.1,no\n", "no header", &["does not look like a header", "first row"]),
        (
            "age,sex,bmi,ill\n54,F,22.5,yes,1\n61,M,30.1,no,2\n",
            "a cell too many",
            &["2x row 2", "5 cells", "4"],
        ),
        ("age,sex,bmi,ill\n54,F,22.5,yes\n61,M,30.1,yes\n", "one class", &["same class", "`ill`"]),
        ("", "nothing", &["empty"]),
    ];
    for (text, mistake, words) in cases {
        let said = said("t.csv", text);
        assert_eq!(said.len(), 1, "{mistake}: {said:?}");
        words
            .iter()
            .for_each(|word| assert!(said[0].contains(word), "{mistake}: '{word}' is not in {said:?}"));
        for cell in ["22,5", "1970", "perhaps", "30.1"] {
            assert!(!said[0].contains(cell), "{mistake} shows a cell: {said:?}");
        }
    }
    let said = said("t.xlsx", "PK");
    assert!(said[0].contains(".csv or .parquet"), "{said:?}");
}

#[test]
fn what_is_missing_is_counted_by_column() {
    let said = said("t.csv", "age,sex,bmi,ill\n,F,22.5,yes\n,M,30.1,no\n40,,20,no\n");
    assert!(said.iter().any(|s| s.starts_with("2x row 2, column `age`")), "{said:?}");
    assert!(said.iter().any(|s| s.starts_with("1x row 4, column `sex`")), "{said:?}");
    assert!(said.iter().any(|s| s.contains("no records are left")), "{said:?}");
}

/// An identifier and a changed order are no mistakes: what the schema does not know is not read, and the report says so.
#[test]
fn columns_that_the_schema_does_not_know_are_not_read() {
    let (_folder, path) = written("t.csv", "bmi,patient,ill,age,sex\n22.5,x1,yes,54,F\n30.1,x2,no,61,M\n");
    let report = check_file(&path, &parse_schema(SCHEMA, Path::new("s")).unwrap()).unwrap();
    assert!(!report.has_problems() && report.unlisted == ["patient"], "{report:?}");
    assert_eq!((report.n_records, report.n_usable, report.n_features), (2, 2, 4));
    assert!(report.lost() == 0.0);
}

#[test]
fn no_schema_is_drafted_from_a_file_in_one_piece() {
    let (_folder, path) = written("t.csv", "age;sex;ill\n54;F;yes\n");
    assert!(draft_schema(&path).unwrap_err().to_string().contains("semicolons"));
}
