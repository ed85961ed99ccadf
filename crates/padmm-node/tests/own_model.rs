//! The model that a site makes for itself after a run: beside `model.json`, marked, and refused by whatever would share it.

use crate::common;

use common::network::Consortium;
use padmm_core::loss::Loss;
use padmm_core::model::{Model, ModelError, Provenance};
use padmm_data::{DataError, read_model, read_model_inside, write_model};
use padmm_node::contract::Silence;
use padmm_node::site::{OWN_MODEL, SiteError, own_model};

#[test]
fn an_own_model_is_made_of_a_finished_run_and_the_records_of_today() {
    let consortium = Consortium::of(2, "path", Silence::Wait);
    let folder = consortium.sites[0].0.folder().to_owned();
    let home = folder.join("../..");
    let run = consortium.contract.name();
    let unfinished = own_model(&home, run).unwrap_err();
    assert!(matches!(unfinished, SiteError::NoModel { .. }), "{unfinished}");
    assert!(unfinished.to_string().contains("site run"), "{unfinished}");

    let schema = consortium.contract.schema().clone();
    let zeros = vec![0.0; schema.feature_space().n_features()];
    let provenance =
        Provenance { version: "0.1.0".into(), algorithm: "p-admm".into(), output: "smoothed".into() };
    let joint = Model::new(schema, Loss::Logistic, &zeros, None, provenance).unwrap();
    write_model(&folder.join("model.json"), &joint, true).unwrap();
    // Other rows than those of the plan, one of them without a value: nobody is told how many they are.
    let row = |i: usize| {
        let (age, ill) = (i % 100, if i % 100 > 45 { "yes" } else { "no" });
        format!("{age},0.{},{},{ill}\n", i % 7, ["A", "B", "O"][i % 3])
    };
    let rows: String = (0..240).map(row).collect();
    std::fs::write(home.join("records.csv"), format!("age,dose,blood,ill\n{rows},0.5,A,yes\n")).unwrap();
    let (path, found) = own_model(&home, run).unwrap();
    assert!(path.ends_with(format!("runs/{run}/{OWN_MODEL}")) && folder.join(OWN_MODEL).exists(), "{path:?}");
    let comparison = found.comparison.unwrap();
    assert_eq!(comparison.records, 240);
    assert!(comparison.combined.auc.unwrap().value > 0.95, "{comparison:?}");

    let refused = read_model(&path).unwrap_err();
    assert!(matches!(refused, DataError::Model { problem: ModelError::Own, .. }), "{refused}");
    assert!(refused.to_string().contains("never to be sent"), "{refused}");
    let own = read_model_inside(&path).unwrap();
    assert!(own.is_own() && !read_model_inside(&folder.join("model.json")).unwrap().is_own());
    assert_eq!(own.values(), found.combined);
    // The joint model is untouched, and the own one is replaced when it is made again.
    assert_eq!(read_model(&folder.join("model.json")).unwrap(), joint);
    own_model(&home, run).unwrap();
}
