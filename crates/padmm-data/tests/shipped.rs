//! The shipped sets: their bytes, their counts, and the way out and back.

#![allow(clippy::float_cmp, reason = "what is meant is equality to the bit")]

use padmm_core::schema::{ColumnKind, Purpose};
use padmm_data::{Source, encode_file, export, load, read_schema, shipped, shipped_set};
use sha2::{Digest, Sha256};
use std::io::Read;

#[test]
fn bytes_are_those_that_uci_publishes() {
    for file in shipped().iter().flat_map(|set| set.files) {
        assert_eq!(hex(&file.bytes()), file.sha256, "{}", file.name);
    }
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The publishers' own descriptions are in the folder but not in the program.
#[test]
fn descriptions_are_those_that_uci_publishes() {
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data");
    for (file, sha256) in [
        ("adult/adult.names.gz", "c248284c0b5de30c9e1958d6cdd168a34a654758b620e68f46aefa83fc0a576a"),
        ("heart/heart-disease.names.gz", "ec7ed5aa4ed8321097808f47b836301c2a0c36f3bb09c40b8b43b622363e6b61"),
    ] {
        let mut bytes = Vec::new();
        let compressed = std::fs::File::open(data.join(file)).unwrap();
        flate2::read::GzDecoder::new(compressed).read_to_end(&mut bytes).unwrap();
        assert_eq!(hex(&bytes), sha256, "{file}");
    }
}

#[test]
fn adult_has_the_counts_of_math_9() {
    let loaded = load(&Source::Shipped("adult".to_owned())).unwrap();
    let (data, records) = (&loaded.encoded, &loaded.encoded.records);
    assert_eq!((data.n_read, data.n_dropped, records.n_records()), (48_842, 3_620, 45_222));
    assert_eq!((records.n_features(), records.n_numeric(), records.n_hot()), (104, 6, 8));
    assert_eq!(data.features.names.len() - 6, 98);
    assert_eq!(records.labels().iter().filter(|z| **z > 0.0).count(), 11_208);
    let test = data.official_test.as_ref().unwrap();
    assert_eq!(test.len(), 45_222);
    assert_eq!(test.iter().filter(|t| **t).count(), 15_060);
    assert!(data.n_clipped.iter().all(|(_, n)| *n == 0), "the published bounds are reached and not passed");
    assert!(records.memory_bytes() < 8_000_000, "{}", records.memory_bytes());
    assert!(records.rows().all(|row| norm(row) <= 1.0));
}

#[test]
fn every_encoded_column_of_adult_is_used() {
    let loaded = load(&Source::Shipped("adult".to_owned())).unwrap();
    let mut used = vec![false; 104];
    for row in loaded.encoded.records.rows() {
        row.hot.iter().for_each(|&j| used[j as usize] = true);
        row.numeric.iter().zip(&mut used).for_each(|(v, used)| *used |= *v > 0.0);
    }
    assert!(used.iter().all(|u| *u));
}

#[test]
fn heart_has_four_hospitals_and_the_complete_cases_of_flamby() {
    let set = shipped_set("heart").unwrap();
    let data = set.encode().unwrap();
    assert_eq!((data.n_read, data.records.n_records()), (920, 740));
    let sites = data.sites.as_ref().unwrap();
    assert_eq!(sites.names, ["cleveland", "hungary", "switzerland", "va"]);
    let count = |site: u32, sign: f64| {
        let labels = data.records.labels().iter().zip(&sites.of_record);
        labels.filter(|&(&z, &s)| s == site && z == sign).count()
    };
    let counts = [0, 1, 2, 3].map(|site| (count(site, 1.0), count(site, -1.0)));
    assert_eq!(counts, [(139, 164), (98, 163), (45, 1), (101, 29)]);
    // Five numbers, 2 + 4 + 2 + 3 + 2 categories, and the intercept.
    assert_eq!(data.features.n_features(), 19);
    assert_eq!(data.features.intercept, Some(18));
    assert!(data.n_clipped.iter().all(|(_, n)| *n == 0), "clinical bounds hold every reading");
    assert!(data.official_test.is_none());
}

#[test]
fn unmeasured_cholesterol_takes_the_public_constant() {
    let set = shipped_set("heart").unwrap();
    let data = set.encode().unwrap();
    let chol = set.schema().columns().iter().find(|c| c.name == "chol").cloned().unwrap();
    let ColumnKind::Numeric { lower, upper, fill: Some(fill) } = chol.kind else { panic!("chol is numeric") };
    let column = data.features.names.iter().position(|n| n == "chol").unwrap();
    let filled = (fill - lower) / (upper - lower);
    let sites = data.sites.unwrap();
    let swiss = data.records.rows().zip(&sites.of_record).filter(|(_, site)| **site == 2);
    assert!(swiss.into_iter().all(|(row, _)| row.numeric[column] == filled));
}

#[test]
fn exported_sets_come_back_identical() {
    let folder = tempfile::tempdir().unwrap();
    for set in shipped() {
        let out = folder.path().join(format!("{}.csv", set.name));
        let exported = export(set.name, &out, false).unwrap();
        assert_eq!(exported.n_records, set.n_records);
        let schema = read_schema(&exported.schema).unwrap();
        let again = encode_file(&exported.table, &schema, Purpose::Train).unwrap();
        let mut original = set.encode().unwrap();
        original.official_test = None;
        assert!(again == original, "{}", set.name);
        let text = std::fs::read_to_string(&out).unwrap();
        assert!(!text.contains("50K."), "labels are normalised");
    }
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 4, "no temporary file is left behind");
}

#[test]
fn an_export_overwrites_only_when_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("heart.csv");
    std::fs::write(folder.path().join("heart.schema.toml"), "mine").unwrap();
    let error = export("heart", &out, false).unwrap_err().to_string();
    assert!(error.contains("heart.schema.toml") && error.contains("--force"), "{error}");
    assert!(!out.exists(), "nothing half-written");
    export("heart", &out, true).unwrap();
    assert!(export("heart", &out, false).is_err());
}

fn norm(row: padmm_core::data::Row<'_>) -> f64 {
    let squares = row.numeric.iter().map(|v| (v * row.scale).powi(2)).sum::<f64>();
    (squares + row.hot.len() as f64 * row.scale.powi(2)).sqrt()
}
