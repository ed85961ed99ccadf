//! `padmm demo sites` on the hospitals' files as they are, with the rows that lack values.

use std::process::Command;

/// Every row is a record at every site and in the simulation that the sites are compared with, and those that lack a value count for nothing
/// in both: the released integers are the same.
#[test]
fn sites_whose_files_lack_values_release_what_the_simulator_does() {
    for algorithm in ["p-admm", "consensus-newton", "private-gradient"] {
        release_what_the_simulator_does(algorithm);
    }
}

fn release_what_the_simulator_does(algorithm: &str) {
    let args = ["demo", "sites", "--quiet", "--rounds", "5", "--test-noise-seed", "7"];
    let args = [&args[..], &["--algorithm", algorithm]].concat();
    let output = Command::new(env!("CARGO_BIN_EXE_padmm-testbuild")).args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8(output.stdout).unwrap();
    let words: Vec<&str> = said.split_whitespace().collect();
    // The rows of the published files; 740 of these 920 have all values.
    for (site, rows) in [("cleveland", "303"), ("hungary", "294"), ("switzerland", "123"), ("va", "200")] {
        assert!(words.windows(2).any(|pair| pair == [site, rows]), "{site} {rows} is not in {said}");
    }
    assert!(said.contains("to the bit") && said.contains("Accuracy on all usable records"), "{said}");
}
