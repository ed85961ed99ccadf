//! Fuzzing starts from these files, so each must be accepted as what it is.

use std::path::Path;

fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target);
    let entries = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    let files: Vec<_> = entries.map(|p| (p.display().to_string(), std::fs::read(&p).unwrap())).collect();
    assert!(!files.is_empty(), "{target} has seeds");
    files
}

#[test]
fn every_seed_is_what_its_target_reads() {
    for (name, bytes) in seeds("frame") {
        assert!(padmm_fuzz::frame(&bytes), "{name} is no frame");
    }
    for (name, bytes) in seeds("contract") {
        assert!(
            padmm_fuzz::contract(std::str::from_utf8(&bytes).unwrap()),
            "{name} is no plan: does its `program` name this version?"
        );
    }
    for (name, bytes) in seeds("card") {
        assert!(padmm_fuzz::card(std::str::from_utf8(&bytes).unwrap()), "{name} is no card");
    }
}

#[test]
fn there_is_a_seed_of_every_kind_of_frame() {
    let mut kinds: Vec<u8> = seeds("frame").iter().map(|(_, bytes)| bytes[0]).collect();
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds, (1..=10).collect::<Vec<u8>>());
}
