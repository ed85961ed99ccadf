//! The commands about data and saved models, run as a user runs them.

use crate::common;

use std::path::Path;

use common::{json, ok, padmm, refused};

/// A model of the heart data whose only weight is on exercise angina.
fn write_model(folder: &Path) {
    let set = padmm_data::shipped_set("heart").unwrap();
    let names = set.schema().feature_space().names;
    let values: Vec<f64> = names
        .iter()
        .map(|n| f64::from(i8::from(n == "exang=1")) - f64::from(i8::from(n == "exang=0")))
        .collect();
    let provenance = padmm_core::model::Provenance {
        version: "0.1.0".into(),
        algorithm: "padmm".into(),
        output: "smoothed".into(),
    };
    let model = padmm_core::model::Model::new(
        set.schema(),
        padmm_core::loss::Loss::Logistic,
        &values,
        None,
        provenance,
    )
    .unwrap();
    padmm_data::write_model(&folder.join("model.json"), &model, false).unwrap();
}

#[test]
fn data_lists_describes_and_exports() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let list = ok(at, &["data"]);
    assert!(list.contains("adult") && list.contains("48842") && list.contains("heart"), "{list}");
    assert_eq!(json(&ok(at, &["data", "--json"]))["datasets"][1]["name"], "heart");
    let text = ok(at, &["data", "describe", "adult"]);
    assert!(text.contains("45222") && text.contains("104") && text.contains("CC BY 4.0"), "{text}");
    assert_eq!(json(&ok(at, &["data", "describe", "adult", "--json"]))["features"], 104);
    ok(at, &["data", "export", "heart", "--out", "heart.csv"]);
    assert!(refused(at, &["data", "export", "heart", "--out", "heart.csv"]).contains("--force"));
    ok(at, &["data", "export", "heart", "--out", "heart.csv", "--force"]);
    assert!(refused(at, &["data", "describe", "hart"]).contains("adult, heart"));
}

#[test]
fn schema_drafts_and_checks() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    ok(at, &["data", "export", "heart", "--out", "heart.csv"]);
    let report = ok(at, &["schema", "check", "heart.csv", "--schema", "heart.schema.toml"]);
    assert!(report.contains("740 are usable") && report.contains("own eyes"), "{report}");
    let report = ok(at, &["schema", "check", "heart.csv", "--schema", "heart.schema.toml", "--json"]);
    assert_eq!(json(&report)["dropped"], 180);
    ok(at, &["schema", "draft", "heart.csv", "--out", "draft.toml"]);
    let error = refused(at, &["schema", "check", "heart.csv", "--schema", "draft.toml"]);
    assert!(error.contains("draft.toml") && error.contains("`num`"), "{error}");
    std::fs::write(at.join("bad.csv"), std::fs::read_to_string(at.join("heart.csv")).unwrap() + "1,2\n")
        .unwrap();
    let output = padmm(at, &["schema", "check", "bad.csv", "--schema", "heart.schema.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stdout).unwrap().contains("row 922 has 2 cells"));
}

#[test]
fn a_saved_model_predicts_and_is_scored() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    write_model(at);
    ok(at, &["data", "export", "heart", "--out", "heart.csv"]);
    let by_name = json(&ok(at, &["evaluate", "--model", "model.json", "--dataset", "heart", "--json"]));
    let by_file = json(&ok(at, &["evaluate", "--model", "model.json", "--data", "heart.csv", "--json"]));
    assert_eq!(by_name, by_file);
    assert_eq!(by_name["records"], 740);
    // Exercise angina alone tells 545 of 740 apart.
    let number = |key: &str| by_name.pointer(key).and_then(serde_json::Value::as_f64).unwrap();
    assert!((number("/accuracy") - 545.0 / 740.0).abs() < 1e-12, "{by_name}");
    // Of the 740 complete records 383 are ill.
    let share: f64 = 383.0 / 740.0;
    assert!((number("/majority_accuracy") - share).abs() < 1e-12, "{by_name}");
    let entropy = -(share * share.ln() + (1.0 - share) * (1.0 - share).ln());
    assert!((number("/base_rate_loss") - entropy).abs() < 1e-9, "{by_name}");
    assert!(number("/calibration/slope") > 0.0 && number("/calibration/intercept").is_finite());

    let unlabelled = "age,sex,cp,trestbps,chol,fbs,restecg,thalach,exang,oldpeak\n\
                      50,1,4,120,200,0,0,150,1,1\n50,1,4,?,200,0,0,150,1,1\n50,1,4,120,200,0,0,150,0,1\n";
    std::fs::write(at.join("new.csv"), unlabelled).unwrap();
    ok(at, &["predict", "--model", "model.json", "--data", "new.csv", "--out", "out.csv"]);
    let written = std::fs::read_to_string(at.join("out.csv")).unwrap();
    let lines: Vec<&str> = written.lines().collect();
    assert_eq!(lines[0], "row,margin,probability,predicted");
    assert!(lines[1].starts_with("2,0.") && lines[1].ends_with(",1"), "{}", lines[1]);
    assert!(lines[2].starts_with("4,-0.") && lines[2].ends_with(",0"), "{}", lines[2]);
    // A column that the schema does not know is handed on.
    let named = unlabelled
        .replace("oldpeak\n", "oldpeak,patient\n")
        .replace(",1\n50", ",1,\"a,1\"\n50")
        .replace(",0,1\n", ",0,1,c3\n");
    std::fs::write(at.join("named.csv"), named).unwrap();
    let args = ["predict", "--model", "model.json", "--data", "named.csv", "--id", "patient"];
    let table = ok(at, &args);
    let named: Vec<&str> = table.lines().collect();
    assert_eq!(named[0], "patient,row,margin,probability,predicted");
    assert_eq!((named[1], named[2]), (&*format!("\"a,1\",{}", lines[1]), &*format!("c3,{}", lines[2])));
    let listed = json(&ok(at, &[&args[..], &["--json"]].concat()));
    assert_eq!(listed["predictions"][1]["id"], "c3");
    let wrong = ["predict", "--model", "model.json", "--data", "new.csv", "--id", "patient"];
    assert!(refused(at, &wrong).contains("no column `patient`"));
    let args = ["predict", "--model", "model.json", "--data", "new.csv", "--out", "out.csv"];
    let again = padmm(at, &args);
    assert_eq!(again.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&again.stderr).contains("--force"));
    assert!(refused(at, &["evaluate", "--model", "model.json", "--data", "new.csv"]).contains("`num`"));
    assert!(
        refused(at, &["evaluate", "--model", "model.json", "--dataset", "adult"]).contains("another schema")
    );

    let own = ["own", "--model", "model.json", "--data", "heart.csv", "--json"];
    let made = json(&ok(at, &own));
    assert_eq!((&made["out"], &made["comparison"]["records"]), (&"own-model.json".into(), &740.into()));
    let loss = |model: &str| made["comparison"][model]["loss"]["value"].as_f64().unwrap();
    assert!(loss("combined") < loss("joint") && loss("combined") < 1.02 * loss("own"), "{made}");
    assert!(refused(at, &own).contains("--force"));
    let table = ok(at, &[&own[..5], &["--force"]].concat());
    assert!(table.contains("own records alone") && table.contains("never to be sent"), "{table}");
    // What is used inside the site reads it; what would build on it, as on a model that may leave, does not.
    let inside = json(&ok(at, &["evaluate", "--model", "own-model.json", "--data", "heart.csv", "--json"]));
    assert!(inside["mean_loss"].as_f64() < by_file["mean_loss"].as_f64(), "{inside}");
    ok(at, &["predict", "--model", "own-model.json", "--data", "new.csv"]);
    let error = refused(at, &["own", "--model", "own-model.json", "--data", "heart.csv", "--out", "x.json"]);
    assert!(error.contains("own-model.json") && error.contains("never to be sent"), "{error}");
    let renamed = std::fs::read_to_string(at.join("own-model.json")).unwrap();
    std::fs::write(at.join("renamed.json"), renamed.replace("padmm-own-model/1", "padmm-model/1")).unwrap();
    assert!(
        refused(at, &["predict", "--model", "renamed.json", "--data", "new.csv"])
            .contains("never to be sent")
    );

    let whole = std::fs::read_to_string(at.join("model.json")).unwrap();
    std::fs::write(at.join("cut.json"), &whole[..whole.len() / 2]).unwrap();
    assert!(refused(at, &["predict", "--model", "cut.json", "--data", "new.csv"]).contains("cut.json"));
}
