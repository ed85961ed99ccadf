//! What an operator can run into: each time a clear error, nothing lost, and a start after it goes on.

use crate::common;

use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, ExitStatus};

use common::{Network, Running, Shape, command, until};
use padmm_node::identity::{Card, Home, PublicKey, SecretKey};
use padmm_node::ledger::SiteLedger;
use rustix::process::Signal;

const SHAPE: Shape = Shape::TRIANGLE;
/// What a site exits with that cannot go on.
const REFUSED: i32 = 2;

/// Runs a site that must refuse to, and gives what it said.
fn refusal(network: &Network, site: usize, flags: &[&str]) -> String {
    let out = command(network, site, flags).output().unwrap();
    let said = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(REFUSED), "{said}");
    said
}

fn assert_says(said: &str, words: &[&str]) {
    for word in words {
        assert!(said.contains(word), "{word:?} is not in: {said}");
    }
}

/// Runs everything to its end, which must be that of a quiet run.
fn goes_on(network: &Network, running: &mut Running<'_>) {
    for site in 0..network.sites.len() {
        if !running.runs(site) {
            running.start(site);
        }
    }
    running.finish();
    assert_eq!(network.outcome(&[]), Network::undisturbed(SHAPE));
}

/// Waits until a site has told of so many rounds.
fn until_round(network: &Network, site: usize, rounds: usize) {
    until("a round", || (network.rounds_told(site) >= rounds).then_some(()))
        .unwrap_or_else(|| panic!("{}", network.log(site)));
}

/// Ends a site as an operator does.
fn stop(running: &mut Running<'_>, site: usize) -> ExitStatus {
    running.signal(site, Signal::TERM);
    running.wait(site)
}

/// Changes a file's text.
fn edit(path: &Path, change: impl Fn(&str) -> String) {
    let text = std::fs::read_to_string(path).unwrap();
    let changed = change(&text);
    assert_ne!(text, changed, "{} was not changed", path.display());
    std::fs::write(path, changed).unwrap();
}

/// A site whose neighbours are running and which stops, killed, with the release of round 3 in its ledger.
fn stopped_in_round_three(network: &Network) -> Running<'_> {
    let mut running = Running::new(network);
    running.start(1);
    running.start(2);
    running.start_with(0, &["--test-kill", "release-after-commit:3"]);
    running.wait(0);
    running
}

#[test]
fn a_port_that_is_in_use_is_named_and_the_site_starts_when_it_is_free() {
    let network = Network::make(SHAPE);
    let port = network.sites[0].port;
    let taken = UdpSocket::bind(("127.0.0.1", port)).unwrap();
    let said = refusal(&network, 0, &[]);
    assert_says(&said, &[&format!("127.0.0.1:{port} cannot be listened on"), "listen", "site.toml"]);
    drop(taken);
    goes_on(&network, &mut Running::new(&network));
}

#[test]
fn a_key_that_others_can_read_is_refused_until_it_is_closed() {
    let network = Network::make(SHAPE);
    for key in ["identity.key", "transport.key", "dataset.key"] {
        let path = network.sites[0].home.join(key);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        let said = refusal(&network, 0, &[]);
        assert_says(&said, &[key, "can be read by others (mode 644)", "chmod 600"]);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    }
    goes_on(&network, &mut Running::new(&network));
}

#[test]
fn a_second_process_of_a_site_is_kept_away_from_the_ledger_of_the_first() {
    let network = Network::make(SHAPE);
    let mut running = Running::new(&network);
    running.start(0);
    // The first process holds the lock once its ledger is there and it waits for the others.
    running.wait_for(0, "waiting for");
    let said = refusal(&network, 0, &[]);
    assert_says(&said, &["another process uses the ledger", "records.ledger.lock"]);
    goes_on(&network, &mut running);
}

#[test]
fn a_full_disk_stops_a_site_before_its_release_leaves_and_it_goes_on_when_there_is_room() {
    let network = Network::make(SHAPE);
    let mut running = Running::new(&network);
    running.start(1);
    running.start(2);
    // Files of this process may grow to so many blocks of 512 bytes and no further, as on a disk that is full.
    let site = command(&network, 0, &[]);
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "trap '' XFSZ; ulimit -f 64; exec \"$0\" \"$@\""])
        .arg(site.get_program())
        .args(site.get_args());
    limited.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null());
    running.start_command(0, limited);
    let status = running.wait(0);
    let said = running.said(0);
    assert_eq!(status.code(), Some(REFUSED), "{said}");
    assert_says(&said, &["records.ledger", "nothing was released", "start again"]);
    let view = SiteLedger::read(&network.sites[0].ledger).unwrap();
    let released = view.state().runs().map(|run| run.n_released()).sum::<usize>();
    assert!(released < SHAPE.rounds as usize, "the disk was large enough: {said}");
    goes_on(&network, &mut running);
}

#[test]
fn a_ledger_that_cannot_be_written_is_named_before_anything_is_sent() {
    let network = Network::make(SHAPE);
    let mut running = stopped_in_round_three(&network);
    let (ledger, kept) = (&network.sites[0].ledger, network.folder().join("kept"));
    std::fs::rename(ledger, &kept).unwrap();
    std::fs::create_dir(ledger).unwrap();
    let said = refusal(&network, 0, &[]);
    assert_says(&said, &["records.ledger", "is not a ledger", "check the path"]);
    std::fs::remove_dir(ledger).unwrap();
    // Nor is a new one begun in place of one that is gone.
    let said = refusal(&network, 0, &[]);
    assert_says(&said, &["records.ledger.head", "it is gone", "put the old ledger back"]);
    std::fs::rename(&kept, ledger).unwrap();
    goes_on(&network, &mut running);
}

#[test]
fn a_ledger_from_a_backup_is_found_out_by_the_neighbours_and_the_newest_one_goes_on() {
    let network = Network::make(SHAPE);
    let mut running = stopped_in_round_three(&network);
    let (old, new) = (network.folder().join("old"), network.folder().join("new"));
    copy(&network.sites[0].home.join("ledgers"), &old);
    // It releases some more, and its neighbours, which are not started again, use that; then the backup is put in its place.
    running.start_with(0, &["--test-kill", "release-after-commit:4"]);
    running.wait(0);
    until_round(&network, 1, 6);
    until_round(&network, 2, 6);
    swap(&network.sites[0].home.join("ledgers"), &new, &old);
    running.start(0);
    let status = running.wait(0);
    assert_eq!(status.code(), Some(REFUSED), "{}", running.said(0));
    let said = running.said(0);
    assert_says(
        &said,
        &["of this ledger, signed with this site's own key", "backup", "Nothing more may leave"],
    );
    assert!(!said.contains("bytes to each neighbour"), "something left: {said}");
    let ledgers = network.sites[0].home.join("ledgers");
    std::fs::remove_dir_all(&ledgers).unwrap();
    std::fs::rename(&new, &ledgers).unwrap();
    goes_on(&network, &mut running);
}

/// Copies the files of a folder.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for file in std::fs::read_dir(from).unwrap().flatten() {
        std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

/// Moves `place` to `aside` and puts a copy of `other` in its place.
fn swap(place: &Path, aside: &Path, other: &Path) {
    std::fs::rename(place, aside).unwrap();
    copy(other, place);
}

#[test]
fn records_that_changed_need_a_persons_word_and_the_old_file_goes_on() {
    let network = Network::make(SHAPE);
    let mut running = stopped_in_round_three(&network);
    let file = network.sites[0].home.join("records.csv");
    let before = std::fs::read_to_string(&file).unwrap();
    // Another value, and as many records as before.
    edit(&file, |text| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines[1] = "33,99,b,0".to_owned();
        lines.join("\n") + "\n"
    });
    let said = refusal(&network, 0, &[]);
    assert_says(&said, &["records.csv", "--data-updates records", "--new-data NAME"]);
    std::fs::write(&file, before).unwrap();
    goes_on(&network, &mut running);
}

/// A ledger of other people's records does not make a neighbour's memory of the first one a sign of a restored backup.
#[test]
fn records_of_other_people_get_a_ledger_of_their_own_and_neighbours_find_nothing_wrong() {
    let network = Network::make(SHAPE);
    let mut running = Running::new(&network);
    running.start_all();
    running.finish();
    let mut again = network.contract.draft().clone();
    again.name = "again".parse().unwrap();
    let again = again.check().unwrap();
    (0..SHAPE.sites).for_each(|site| network.accept(site, &again));
    std::fs::write(network.sites[0].home.join("records.csv"), common::records(9, 60)).unwrap();
    let start = |site: usize, flags: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_padmm-testbuild"))
            .args(["site", "run", "--run", "again", "--test-noise-seed", common::SEED, "--home"])
            .arg(&network.sites[site].home)
            .args(flags)
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap()
    };
    let sites = [start(0, &["--new-data", "others"]), start(1, &[]), start(2, &[])];
    for site in sites {
        let out = site.wait_with_output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    }
    let folder = network.sites[0].home.join("ledgers");
    for (name, run) in [("records", &network.contract), ("others", &again)] {
        let view = SiteLedger::read(&folder.join(format!("{name}.ledger"))).unwrap();
        let runs: Vec<String> = view.state().runs().map(|r| r.start.run.clone()).collect();
        assert_eq!(runs, [run.hash().to_string()], "{name}");
    }
}

#[test]
fn another_number_of_records_than_the_plans_is_refused() {
    let network = Network::make(SHAPE);
    let file = network.sites[0].home.join("records.csv");
    let before = std::fs::read_to_string(&file).unwrap();
    edit(&file, |text| text.lines().take(50).collect::<Vec<_>>().join("\n") + "\n");
    assert_says(&refusal(&network, 0, &[]), &["has 49 rows", "says 60 records for north"]);
    std::fs::write(&file, before).unwrap();
    goes_on(&network, &mut Running::new(&network));
}

#[test]
fn sites_with_different_plans_name_the_field_and_the_site_and_spend_nothing() {
    let network = Network::make(SHAPE);
    let mut other = network.contract.draft().clone();
    other.settings.rounds += 1;
    network.accept(1, &other.check().unwrap());
    let mut running = Running::new(&network);
    running.start_all();
    let status = running.wait(1);
    let said = running.said(1);
    assert_eq!(status.code(), Some(REFUSED), "{said}");
    assert_says(&said, &["holds another plan", "settings.rounds", "Nothing was spent"]);
    assert!(said.contains("north holds") || said.contains("south holds"), "{said}");
    // It may have left before the others could ask it for its plan; they ask when it comes again.
    let ended = until("the others refuse too", || {
        if !running.runs(1) {
            running.start(1);
        }
        (!running.runs(0) && !running.runs(2)).then_some(())
    });
    assert!(ended.is_some(), "{}", network.log(0) + &network.log(2));
    running.signal(1, Signal::KILL);
    running.wait(1);
    for site in [0, 2] {
        let status = running.wait(site);
        let said = running.said(site);
        assert_eq!(status.code(), Some(REFUSED), "{said}");
        assert_says(&said, &["east holds another plan", "settings.rounds"]);
    }
    for site in &network.sites {
        assert_eq!(SiteLedger::read(&site.ledger).unwrap().state().runs().count(), 0, "{}", site.name);
    }
    network.accept(1, &network.contract);
    goes_on(&network, &mut running);
}

#[test]
fn the_log_says_whose_signature_is_missing_and_the_run_starts_when_it_is_there() {
    // In a row, the first site is no neighbour of the third and hears of its word through the second.
    let shape = Shape { graph: "path", ..SHAPE };
    let network = Network::make(shape);
    let mut running = Running::new(&network);
    running.start(0);
    running.start(1);
    running.wait_for(0, "waiting for the signature of south on this plan");
    running.wait_for(1, "waiting for south (silent for");
    // A site that has not accepted the plan does not run at all.
    let word = network.run_file(2, "south.accept");
    let text = std::fs::read_to_string(&word).unwrap();
    std::fs::remove_file(&word).unwrap();
    assert_says(&refusal(&network, 2, &[]), &["south has not accepted a plan named trial", "--home"]);
    std::fs::write(&word, text).unwrap();
    running.start(2);
    running.finish();
    assert_eq!(network.outcome(&[]), Network::undisturbed(shape));
}

#[test]
fn a_site_that_is_asked_to_stop_says_so_and_goes_on_later() {
    let network = Network::make(SHAPE);
    let mut running = Running::new(&network);
    running.start(0);
    running.start_with(1, &["--test-kill", "send-after:3"]);
    running.start(2);
    // Nobody comes further than this round, so the others are still at work when they are asked.
    running.wait(1);
    for (site, signal) in [(0, Signal::TERM), (2, Signal::INT)] {
        running.signal(site, signal);
        let status = running.wait(site);
        assert_eq!(status.code(), Some(3), "{}", running.said(site));
        assert_says(&running.said(site), &["stopped as asked; nothing is lost, start again to continue"]);
    }
    goes_on(&network, &mut running);
}

#[test]
fn a_site_that_waits_for_the_start_can_be_asked_to_stop_too() {
    let network = Network::make(SHAPE);
    let mut running = Running::new(&network);
    running.start(0);
    running.wait_for(0, "waiting for");
    assert_eq!(stop(&mut running, 0).code(), Some(3));
    goes_on(&network, &mut running);
}

#[test]
fn a_cap_that_the_plan_would_cross_is_named_before_anything_is_sent() {
    let network = Network::make(SHAPE);
    let config = network.sites[0].home.join("site.toml");
    let before = std::fs::read_to_string(&config).unwrap();
    edit(&config, |text| text.replace("epsilon = 10.0", "epsilon = 1.0"));
    let mut running = Running::new(&network);
    running.start(1);
    running.start(2);
    let said = refusal(&network, 0, &[]);
    assert_says(&said, &["cap", "padmm-site ledger cap", "5"]);
    assert!(!network.run_file(0, "egress.csv").exists(), "something may have left");
    assert_eq!(SiteLedger::read(&network.sites[0].ledger).unwrap().state().runs().count(), 0);
    // The ledger has the small cap by now; a larger one in site.toml alone does not count.
    std::fs::write(&config, before).unwrap();
    assert_says(&refusal(&network, 0, &[]), &["the ledger decides", "padmm-site ledger cap"]);
    let raised = Command::new(env!("CARGO_BIN_EXE_padmm-testbuild"))
        .args(["ledger", "cap"])
        .arg(&network.sites[0].ledger)
        .args(["--epsilon", "10", "--delta", "1e-4"])
        .output()
        .unwrap();
    assert!(raised.status.success(), "{}", String::from_utf8_lossy(&raised.stderr));
    goes_on(&network, &mut running);
}

/// The others hold a card of a site with another transport key: it is told so, in words, and not hundreds of times.
#[test]
fn a_site_whose_key_the_others_do_not_know_says_so_and_goes_on_when_they_do() {
    let network = Network::make(SHAPE);
    let home = Home::open(&network.sites[0].home).unwrap();
    let import = |key: PublicKey, serial: u32| {
        let card = home.card();
        let addresses = card.addresses().to_vec();
        let newer =
            Card::sign(home.identity(), key, home.name(), serial, addresses, None, card.certificate());
        for site in [1, 2] {
            Home::open(&network.sites[site].home)
                .unwrap()
                .cards()
                .import(newer.as_ref().unwrap(), false)
                .unwrap();
        }
    };
    let serial = home.card().serial();
    import(SecretKey::generate().unwrap().public(), serial + 1);
    let mut running = Running::new(&network);
    running.start_all();
    let line = "does not know the key of this site and closes the connection";
    running.wait_for(0, &format!("east {line}"));
    running.wait_for(0, &format!("south {line}"));
    running.wait_for(0, "(4 such so far)");
    running.wait_for(1, "is no neighbour's in this plan");
    for site in [1, 2] {
        assert_eq!(stop(&mut running, site).code(), Some(3), "{}", running.said(site));
    }
    let said = running.said(0);
    assert!(said.lines().filter(|l| l.contains(line)).count() < 12, "a log must not be a target: {said}");
    import(home.transport().public(), serial + 2);
    goes_on(&network, &mut running);
}
