//! What a run is not continued with: a copy of its ledger, or noise from elsewhere.

use crate::common;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Stdio};

use common::{Network, RUN, Running, Shape, command};
use padmm_core::algorithm::P_ADMM;
use padmm_node::contract::Silence;
use padmm_node::ledger::SiteLedger;

const SHAPE: Shape =
    Shape { algorithm: P_ADMM, sites: 3, graph: "complete", rounds: 20, silence: Silence::Wait };
/// What a site exits with that cannot go on.
const REFUSED: i32 = 2;

/// The site's command as a hospital starts it: the noise is the system's.
fn shipped(network: &Network, site: usize) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_padmm-testbuild"));
    command.args(["site", "run", "--run", RUN, "--home"]).arg(&network.sites[site].home);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// Rounds for which a site's list of what left has two different payloads.
fn doubled(network: &Network, site: usize) -> Vec<u32> {
    let text = std::fs::read_to_string(network.run_file(site, "egress.csv")).unwrap();
    let mut digests: BTreeMap<u32, BTreeSet<&str>> = BTreeMap::new();
    for line in text.lines().filter(|line| line.contains(",release,")) {
        if let [_, _, turn, _, _, _, digest, _] = line.split(',').collect::<Vec<_>>()[..] {
            digests.entry(turn.parse().unwrap()).or_default().insert(digest);
        }
    }
    digests.into_iter().filter(|(_, digests)| digests.len() > 1).map(|(round, _)| round).collect()
}

/// A ledger and its head, under another name or in another folder.
fn move_ledger(from: &Path, to: &Path) {
    for ending in ["", ".head"] {
        let named = |path: &Path| format!("{}{ending}", path.display());
        std::fs::rename(named(from), named(to)).unwrap();
    }
}

/// The newest ledger is set aside in the same folder, under another name, and a backup is put in its place. The neighbours show
/// releases that only the copy has: it must not answer for them, or sixteen rounds leave a second time with other noise.
#[test]
fn a_backup_beside_the_newest_ledger_releases_nothing_a_second_time() {
    let network = Network::make(SHAPE);
    let mut running = Running::new(&network);
    running.start(1);
    running.start(2);
    running.start_with(0, &["--test-kill", "release-after-commit:4"]);
    running.wait(0);
    let ledger = &network.sites[0].ledger;
    let backup = network.folder().join("backup");
    std::fs::create_dir(&backup).unwrap();
    let folder = ledger.parent().unwrap();
    for file in std::fs::read_dir(folder).unwrap().flatten() {
        std::fs::copy(file.path(), backup.join(file.file_name())).unwrap();
    }
    running.is_disturbed(0);
    running.start(0);
    running.finish();
    let aside = folder.join("set-aside.ledger");
    move_ledger(ledger, &aside);
    for file in std::fs::read_dir(&backup).unwrap().flatten() {
        std::fs::copy(file.path(), folder.join(file.file_name())).unwrap();
    }
    running.start(1);
    running.start(2);
    let mut other_noise = shipped(&network, 0);
    other_noise.args(["--test-noise-seed", "8"]);
    running.start_command(0, other_noise);
    let status = running.wait(0);
    let said = running.said(0);
    assert_eq!(doubled(&network, 0), [0; 0], "rounds left a second time: {said}");
    assert_eq!(status.code(), Some(REFUSED), "{said}");
    for words in ["records.ledger", "set-aside.ledger", "one is a copy of the other", "out of the folder"] {
        assert!(said.contains(words), "{words:?} is not in: {said}");
    }
    // The newest one under its own name, and nothing beside it, is in order.
    for file in std::fs::read_dir(folder).unwrap().flatten().map(|f| f.path()) {
        if file.file_name().unwrap().to_string_lossy().starts_with("records.ledger") {
            std::fs::remove_file(file).unwrap();
        }
    }
    move_ledger(&aside, ledger);
    running.start(0);
    running.finish();
    network.outcome(&[]);
}

/// What was begun with noise from a seed is not finished with a site's own, as if all of it were exact; nor the other way round.
#[test]
fn a_run_is_finished_with_the_noise_that_it_was_begun_with() {
    let network = Network::make(Shape::TRIANGLE);
    let mut running = Running::new(&network);
    running.start(1);
    running.start(2);
    running.start_with(0, &["--test-kill", "release-after-commit:3"]);
    running.wait(0);
    let ledger = &network.sites[0].ledger;
    let before = SiteLedger::read(ledger).unwrap().head();
    let out = shipped(&network, 0).stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(REFUSED), "{said}");
    for words in ["was begun in the ledger", "insecure, for simulation only", "Nothing was charged or sent"] {
        assert!(said.contains(words), "{words:?} is not in: {said}");
    }
    assert_eq!(SiteLedger::read(ledger).unwrap().head(), before);
    running.is_disturbed(0);
    running.start(0);
    running.finish();
    assert_eq!(network.outcome(&[]), Network::undisturbed(Shape::TRIANGLE));

    // Begun as a hospital begins it.
    let network = Network::make(Shape::TRIANGLE);
    let mut running = Running::new(&network);
    for site in 0..2 {
        running.start_command(site, shipped(&network, site));
    }
    let mut killed = shipped(&network, 2);
    killed.args(["--test-kill", "release-after-commit:2"]);
    running.start_command(2, killed);
    running.wait(2);
    let out = command(&network, 2, &[]).stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(REFUSED), "{said}");
    assert!(said.contains("was begun in the ledger"), "{said}");
}
