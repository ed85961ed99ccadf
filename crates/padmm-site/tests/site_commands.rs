//! `padmm site`, run as an operator runs it.

use crate::common;

use std::path::Path;

use common::{json, ok, padmm, refused};
use padmm_node::identity::{Card, Home, SecretKey};

fn init(at: &Path, name: &str) -> String {
    ok(at, &["site", "init", "--home", name, "--name", name, "--address", "localhost:7447"])
}

#[test]
fn a_site_is_made_once_and_says_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let said = init(at, "north");
    assert!(said.contains("Fill in [data] and [cap]") && said.contains("north/card.toml"), "{said}");
    let fingerprint = Home::open(&at.join("north")).unwrap().card().fingerprint().to_string();
    assert!(said.contains(&fingerprint), "{said}");
    let again = refused(at, &["site", "init", "--home", "north", "--name", "north"]);
    assert!(again.contains("never overwritten"), "{again}");
    let full = ["--data", "t.csv", "--cap-epsilon", "5", "--cap-delta", "1e-4"];
    let said = ok(at, &[&["site", "init", "--home", "south", "--name", "south"], &full[..]].concat());
    assert!(!said.contains("Fill in"), "{said}");
    let home = Home::open(&at.join("south")).unwrap();
    assert!(home.config().data().unwrap().is_absolute());
    assert!(refused(at, &["site", "init", "--home", "w", "--name", "West!"]).contains("not a name"));
    assert!(
        refused(at, &["site", "init", "--home", "w", "--name", "w", "--cap-epsilon", "5"])
            .contains("cap-delta")
    );
    assert!(refused(at, &["site", "card", "--home", "absent"]).contains("padmm-site site init"));
}

#[test]
fn cards_are_shown_exchanged_and_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    init(at, "north");
    init(at, "south");
    let shown = json(&ok(at, &["site", "card", "north/card.toml", "--json"]));
    assert_eq!(shown["serial"], 1);
    assert_eq!(ok(at, &["site", "card", "--home", "north"]), ok(at, &["site", "card", "north/card.toml"]));
    let add = ["site", "add-card", "north/card.toml", "--home", "south"];
    assert!(ok(at, &add).contains("over the telephone"));
    assert!(ok(at, &add).contains("known already"));
    std::fs::copy(at.join("north/card.toml"), at.join("old.toml")).unwrap();
    assert!(ok(at, &["site", "rotate", "--home", "north"]).contains("new transport key"));
    assert_eq!(json(&ok(at, &[&add[..], &["--json"]].concat()))["import"], "updated");
    let older = refused(at, &["site", "add-card", "old.toml", "--home", "south"]);
    assert!(older.contains("serial 1") && older.contains("serial 2"), "{older}");

    let before = shown["fingerprint"].as_str().unwrap();
    assert!(ok(at, &["site", "rotate", "--home", "north", "--identity"]).contains("made again"));
    let other = refused(at, &add);
    assert!(other.contains(before) && other.contains("--replace"), "{other}");
    let replaced = ok(at, &[&add[..], &["--replace"]].concat());
    assert!(replaced.contains(before), "both fingerprints are shown: {replaced}");
    let own = refused(at, &["site", "add-card", "south/card.toml", "--home", "south"]);
    assert!(own.contains("own name"), "{own}");

    let text = std::fs::read_to_string(at.join("north/card.toml")).unwrap();
    std::fs::write(at.join("bad.toml"), text.replace("localhost:7447", "elsewhere:7447")).unwrap();
    let bad = refused(at, &["site", "add-card", "bad.toml", "--home", "south"]);
    assert!(bad.contains("changed after it was signed"), "{bad}");
}

#[test]
fn an_authority_gets_a_request_and_its_certificate_is_installed() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    init(at, "north");
    let said = ok(at, &["site", "csr", "--home", "north", "--out", "north.csr"]);
    assert!(said.contains("north.padmm.internal"), "{said}");
    assert!(ok(at, &["site", "csr", "--home", "north"]).starts_with("-----BEGIN CERTIFICATE REQUEST"));
    assert!(refused(at, &["site", "csr", "--home", "north", "--out", "north.csr"]).contains("--force"));
    // A certificate of the site's own stands for one of an authority: what is checked here is key and name.
    let home = Home::open(&at.join("north")).unwrap();
    let certificate = |key: &SecretKey| {
        let now = std::time::SystemTime::now();
        padmm_node::identity::Certificate::self_signed(home.name(), key, now, 50).unwrap()
    };
    std::fs::write(at.join("good.pem"), certificate(home.identity()).pem()).unwrap();
    std::fs::write(at.join("bad.pem"), certificate(&SecretKey::generate().unwrap()).pem()).unwrap();
    assert!(refused(at, &["site", "certify", "bad.pem", "--home", "north"]).contains("another key"));
    let said = ok(at, &["site", "certify", "good.pem", "--home", "north", "--chain", "bad.pem"]);
    assert!(said.contains("is installed"), "{said}");
    let card = Card::read(&at.join("north/card.toml")).unwrap();
    assert_eq!((card.serial(), card.certificate().pem().matches("BEGIN CERTIFICATE").count()), (2, 2));
    assert!(refused(at, &["site", "certify", "absent.pem", "--home", "north"]).contains("absent.pem"));
    assert!(padmm(at, &["site", "--help"]).status.success());
}

#[test]
fn a_site_moves_with_a_new_card_and_the_same_identity() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    init(at, "north");
    init(at, "south");
    ok(at, &["site", "add-card", "north/card.toml", "--home", "south"]);
    let before = Card::read(&at.join("north/card.toml")).unwrap();
    let moved = [
        "site",
        "move",
        "--home",
        "north",
        "--address",
        "new.example:9000",
        "--relay",
        "https://relay.example",
    ];
    let said = ok(at, &moved);
    assert!(said.contains("new.example:9000") && said.contains("site.toml"), "{said}");
    let after = Card::read(&at.join("north/card.toml")).unwrap();
    assert_eq!((after.serial(), after.fingerprint()), (2, before.fingerprint()));
    assert_eq!((after.transport(), after.relay()), (before.transport(), Some("https://relay.example")));
    assert_eq!(
        json(&ok(at, &["site", "add-card", "north/card.toml", "--home", "south", "--json"]))["import"],
        "updated"
    );
    assert!(refused(at, &["site", "move", "--home", "north"]).contains("--address"));
}
