//! Keys, certificates, cards and homes: what is accepted, and every way in which something is refused.

use crate::common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use common::{TestAuthority, days, key, name, now, own_certificate};
use padmm_node::identity::{
    Authority, Cap, Card, CardDraft, CardStore, Certificate, Expiry, Fingerprint, Home, IdentityError,
    Imported, InitRequest, PublicKey, SecretKey, Signature, cards_in,
};
use proptest::prelude::*;

fn request(site: &str) -> InitRequest {
    InitRequest {
        addresses: vec!["north.example.org:7447".into(), "[2001:db8::1]:7447".into()],
        relay: Some("https://relay.example.org".into()),
        ..InitRequest::new(name(site))
    }
}

fn card(site: &str, identity: u8, serial: u32) -> Card {
    card_with(site, &key(identity), serial, &own_certificate(site, &key(identity), 100))
}

fn card_with(site: &str, identity: &SecretKey, serial: u32, certificate: &Certificate) -> Card {
    let transport = key(200).public();
    let addresses = vec!["a.example.org:1".to_owned(), "b:2".to_owned()];
    Card::sign(identity, transport, &name(site), serial, addresses, Some("https://r".into()), certificate)
        .unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_home_is_made_whole_and_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("north");
    let made = Home::init(&dir, &request("north"), now()).unwrap();
    for secret in ["identity.key", "transport.key", "dataset.key"] {
        assert_eq!(mode(&dir.join(secret)), 0o600, "{secret}");
    }
    assert_eq!(mode(&dir), 0o700);
    let opened = Home::open(&dir).unwrap();
    assert_eq!(opened.card(), made.card());
    assert_eq!(opened.identity().public(), *opened.card().identity());
    assert_eq!(opened.transport().public(), *opened.card().transport());
    assert_ne!(opened.identity().public(), opened.transport().public());
    assert_ne!(opened.dataset_key(), &[0; 32]);
    assert_eq!(Card::read(&opened.card_path()).unwrap(), *opened.card());
    assert_eq!(opened.config().listen().port(), 7447);
    assert_eq!(opened.card().check(now()).unwrap(), Expiry::Fine);
    assert_eq!(opened.run_dir(&name("run")), dir.join("runs/run"));
    assert!(opened.certificate_request().unwrap().starts_with("-----BEGIN CERTIFICATE REQUEST-----"));
    assert!(format!("{opened:?}").contains("hidden"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary folder is left");
}

#[test]
fn what_is_there_is_never_overwritten_and_failure_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("north");
    fs::create_dir(&dir).unwrap();
    assert!(matches!(Home::init(&dir, &request("north"), now()), Err(IdentityError::Exists { .. })));
    fs::remove_dir(&dir).unwrap();
    let bad: [fn(&mut InitRequest); 5] = [
        |r| r.addresses = vec!["no-port".into()],
        |r| r.relay = Some("relay".into()),
        |r| r.listen = "north:7447".into(),
        |r| r.valid_days = 0,
        |r| r.cap = Some(Cap { epsilon: -1.0, delta: 1e-4 }),
    ];
    for spoil in bad {
        let mut wrong = request("north");
        spoil(&mut wrong);
        assert!(matches!(Home::init(&dir, &wrong, now()), Err(IdentityError::Setting { .. })), "{wrong:?}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
    let nowhere = folder.path().join("absent/north");
    assert!(matches!(Home::init(&nowhere, &request("north"), now()), Err(IdentityError::Write { .. })));
    assert!(matches!(Home::open(&nowhere), Err(IdentityError::NoHome { .. })));
}

#[test]
fn secrets_must_be_secret_and_files_must_belong_together() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (folder.path().join("a"), folder.path().join("b"));
    Home::init(&a, &request("north"), now()).unwrap();
    Home::init(&b, &request("north"), now()).unwrap();
    for secret in ["identity.key", "transport.key", "dataset.key"] {
        let path = a.join(secret);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let text = Home::open(&a).unwrap_err().to_string();
        assert!(
            text.contains("mode 640") && text.contains(&format!("chmod 600 {}", path.display())),
            "{text}"
        );
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    }
    for file in ["identity.key", "transport.key", "certificate.pem", "card.toml"] {
        let own = fs::read(a.join(file)).unwrap();
        fs::write(a.join(file), fs::read(b.join(file)).unwrap()).unwrap();
        let error = Home::open(&a).unwrap_err();
        assert!(matches!(error, IdentityError::Mismatch { .. }), "{file}: {error}");
        fs::write(a.join(file), own).unwrap();
    }
    let secret = fs::read_to_string(a.join("identity.key")).unwrap();
    fs::write(a.join("identity.key"), &secret[1..]).unwrap();
    let text = Home::open(&a).unwrap_err().to_string();
    assert!(text.contains("identity.key") && !text.contains(&secret[1..15]), "{text}");
    fs::remove_file(a.join("identity.key")).unwrap();
    assert!(matches!(Home::open(&a), Err(IdentityError::Read { .. })));
}

#[test]
fn the_configuration_says_what_is_missing_and_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("north");
    let home = Home::init(&dir, &request("north"), now()).unwrap();
    assert!(home.config().data().unwrap_err().to_string().contains("[data]"));
    assert!(home.config().cap().unwrap_err().to_string().contains("[cap]"));
    let full = folder.path().join("full");
    let cap = Some(Cap { epsilon: 5.0, delta: 1e-5 });
    let asked = InitRequest { data: Some("a \"file\".csv".into()), cap, ..request("north") };
    let home = Home::init(&full, &asked, now()).unwrap();
    assert_eq!(home.config().data().unwrap(), full.join("a \"file\".csv"));
    assert_eq!(home.config().cap().ok(), cap);
    let good = fs::read_to_string(full.join("site.toml")).unwrap();
    for (from, to, says) in [
        ("epsilon = 5.0", "epsilon = 0.0", "cap"),
        ("0.0.0.0:7447", "7447", "listen"),
        ("format = \"human\"", "format = \"loud\"", "line"),
        ("[log]", "[lag]", "lag"),
        ("name = \"north\"", "name = \"North\"", "North"),
    ] {
        fs::write(full.join("site.toml"), good.replace(from, to)).unwrap();
        let text = Home::open(&full).unwrap_err().to_string();
        assert!(text.contains("site.toml") && text.contains(says), "{text}");
    }
}

/// A field's name, and a change to it.
type Change = (&'static str, fn(&mut CardDraft));

#[test]
fn a_card_with_any_field_changed_is_refused() {
    let good = card("north", 1, 3);
    let draft = CardDraft::from(good.clone());
    assert_eq!(draft.clone().check().unwrap(), good);
    let changes: Vec<Change> = vec![
        ("name", |c| c.name = name("south")),
        ("serial", |c| c.serial += 1),
        ("identity", |c| c.identity = key(2).public()),
        ("transport", |c| c.transport = key(2).public()),
        ("addresses", |c| c.addresses[0].push('1')),
        ("fewer addresses", |c| c.addresses.truncate(1)),
        ("other border between addresses", |c| c.addresses = vec!["a.example.org:1b:2".into()]),
        ("relay", |c| c.relay = Some("https://s".into())),
        ("no relay", |c| c.relay = None),
        ("certificate", |c| c.certificate.push('\n')),
        ("signature", |c| c.signature = Signature([7; 64])),
    ];
    for (what, change) in changes {
        let mut changed = draft.clone();
        change(&mut changed);
        assert!(matches!(changed.check(), Err(IdentityError::CardSignature { .. })), "{what}");
    }
    let other = CardDraft { format: 2, ..draft };
    assert!(matches!(other.check(), Err(IdentityError::CardFormat { found: 2, .. })));
}

#[test]
fn a_signed_card_still_needs_its_own_certificate() {
    let sign = |certificate: &Certificate| {
        Card::sign(&key(1), key(9).public(), &name("north"), 1, vec![], None, certificate)
    };
    let error = sign(&own_certificate("north", &key(2), 100)).unwrap_err();
    assert!(matches!(error, IdentityError::CertificateKey { .. }), "{error}");
    let error = sign(&own_certificate("south", &key(1), 100)).unwrap_err();
    assert!(matches!(error, IdentityError::CertificateName { .. }), "{error}");
    assert!(error.to_string().contains("south.padmm.internal"), "{error}");
    assert!(matches!(Certificate::from_pem("north", "nothing"), Err(IdentityError::NotACertificate { .. })));
}

#[test]
fn cards_read_from_files_say_where_they_are_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("north.toml");
    let good = card("north", 1, 1);
    fs::write(&path, good.to_toml()).unwrap();
    assert_eq!(Card::read(&path).unwrap(), good);
    let text = good.to_toml();
    fs::write(&path, text.replace("name = \"north\"", "name = \"No rth\"")).unwrap();
    let error = Card::read(&path).unwrap_err().to_string();
    assert!(error.contains("north.toml, line 4"), "{error}");
    assert!(matches!(Card::read(&folder.path().join("absent")), Err(IdentityError::Read { .. })));
    fs::write(&path, text).unwrap();
    fs::write(folder.path().join("plan.toml"), "format = 1\n").unwrap();
    assert_eq!(cards_in(folder.path()).unwrap(), [good]);
}

#[test]
fn certificates_run_out() {
    let card = card("north", 1, 1);
    assert_eq!(card.check(now()).unwrap(), Expiry::Fine);
    assert_eq!(card.check(now() + days(70)).unwrap(), Expiry::Fine);
    assert_eq!(card.check(now() + days(71)).unwrap(), Expiry::Soon { days: 29 });
    assert_eq!(card.check(now() + days(100)).unwrap(), Expiry::Soon { days: 0 });
    assert!(matches!(card.check(now() + days(101)), Err(IdentityError::Expired { .. })));
    assert!(matches!(card.certificate().expiry(now() + days(101)), Expiry::Expired { .. }));
    // Clocks may differ by a day.
    assert_eq!(card.check(now() - days(1)).unwrap(), Expiry::Fine);
    assert!(matches!(card.check(now() - days(2)), Err(IdentityError::NotYetValid { .. })));
}

#[test]
fn an_authority_accepts_its_own_certificates_only() {
    let ca = TestAuthority::new("hospitals");
    let authority = Authority::from_pem(&ca.pem).unwrap();
    assert!(authority.name().contains("hospitals"));
    let (north, public) = (name("north"), key(1).public());
    let read = |pem: &str| Certificate::from_pem("north", pem).unwrap();
    let good = read(&ca.issue("north.padmm.internal", &public, 50));
    good.check_owner(&north, &public).unwrap();
    authority.check(&north, &good, now()).unwrap();

    let delegate = ca.delegate();
    let below = delegate.issue("north.padmm.internal", &public, 50);
    authority.check(&north, &read(&format!("{below}{}", delegate.pem)), now()).unwrap();
    let error = authority.check(&north, &read(&below), now()).unwrap_err();
    assert!(matches!(error, IdentityError::OtherAuthority { .. }), "{error}");

    // An authority of the same name with another key, and a certificate of the site's own.
    let other = read(&TestAuthority::new("hospitals").issue("north.padmm.internal", &public, 50));
    for wrong in [other, own_certificate("north", &key(1), 50)] {
        let error = authority.check(&north, &wrong, now()).unwrap_err();
        assert!(matches!(error, IdentityError::OtherAuthority { .. }), "{error}");
    }
    let error = authority.check(&north, &good, now() + days(51)).unwrap_err();
    assert!(matches!(error, IdentityError::Expired { .. }), "{error}");
    let wrong_name = read(&ca.issue("south.padmm.internal", &public, 50));
    let error = wrong_name.check_owner(&north, &public).unwrap_err();
    assert!(matches!(error, IdentityError::CertificateName { .. }), "{error}");
    let wrong_key = read(&ca.issue("north.padmm.internal", &key(2).public(), 50));
    let error = wrong_key.check_owner(&north, &public).unwrap_err();
    assert!(matches!(error, IdentityError::CertificateKey { .. }), "{error}");

    let old = TestAuthority::valid("old", now() - days(10), now() + days(5));
    let issued = read(&old.issue("north.padmm.internal", &public, 50));
    let error = Authority::from_pem(&old.pem).unwrap().check(&north, &issued, now() + days(6)).unwrap_err();
    assert!(matches!(error, IdentityError::AuthorityExpired { .. }), "{error}");
    // An end-entity certificate that is no authority's, and no certificate.
    for pem in [good.pem(), "nothing", &format!("{0}{0}", ca.pem)] {
        assert!(matches!(Authority::from_pem(pem), Err(IdentityError::NotAnAuthority { .. })));
    }
    // The authority's own certificate in place of a site's.
    let error = authority.check(&north, &read(&ca.pem), now()).unwrap_err();
    assert!(matches!(error, IdentityError::Chain { .. }), "{error}");
}

#[test]
fn serials_decide_between_cards_and_people_between_identities() {
    let folder = tempfile::tempdir().unwrap();
    let store = CardStore::new(folder.path().to_owned(), name("south"));
    assert!(matches!(store.load(&name("north")), Err(IdentityError::UnknownSite { .. })));
    let third = card("north", 1, 3);
    assert_eq!(store.import(&third, false).unwrap(), Imported::New);
    assert_eq!(store.import(&third, false).unwrap(), Imported::Unchanged);
    assert_eq!(store.load(&name("north")).unwrap(), third);
    let same = card_with("north", &key(1), 3, &own_certificate("north", &key(1), 90));
    assert!(matches!(store.import(&same, true), Err(IdentityError::SameSerial { serial: 3, .. })));
    let error = store.import(&card("north", 1, 2), true).unwrap_err();
    assert!(matches!(error, IdentityError::OlderCard { found: 2, known: 3, .. }), "{error}");
    assert_eq!(store.import(&card("north", 1, 5), false).unwrap(), Imported::Updated { from: 3 });
    let other = card("north", 2, 9);
    let text = store.import(&other, false).unwrap_err().to_string();
    for fingerprint in [third.fingerprint(), other.fingerprint()] {
        assert!(text.contains(&fingerprint.to_string()), "{text}");
    }
    assert_eq!(store.import(&other, true).unwrap(), Imported::Replaced { known: third.fingerprint() });
    assert!(matches!(store.import(&card("south", 1, 1), true), Err(IdentityError::OwnName { .. })));
    assert_eq!(store.all().unwrap(), std::slice::from_ref(&other));
    fs::write(folder.path().join("west.toml"), other.to_toml()).unwrap();
    assert!(matches!(store.load(&name("west")), Err(IdentityError::Text { .. })));
}

#[test]
fn keys_rotate_and_the_old_ones_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("north");
    let mut home = Home::init(&dir, &request("north"), now()).unwrap();
    let first = home.card().clone();
    let old = fs::read(dir.join("transport.key")).unwrap();
    home.rotate_transport(now() + days(1000), 100).unwrap();
    assert_eq!((home.card().serial(), home.card().fingerprint()), (2, first.fingerprint()));
    assert_ne!(home.card().transport(), first.transport());
    assert_eq!(home.card().addresses(), first.addresses());
    assert_eq!(
        home.card().check(now() + days(1060)).unwrap(),
        Expiry::Fine,
        "its own certificate is renewed"
    );
    assert_eq!(fs::read(dir.join("transport.key.1")).unwrap(), old);
    assert_eq!(mode(&dir.join("transport.key.1")), 0o600);

    home.rotate_identity(now(), 100).unwrap();
    assert_eq!(home.card().serial(), 3);
    assert_ne!(home.card().fingerprint(), first.fingerprint());
    assert_eq!(Home::open(&dir).unwrap().card(), home.card());
    assert!(dir.join("identity.key.2").exists() && dir.join("transport.key.2").exists());
    assert!(matches!(home.rotate_identity(now(), 0), Err(IdentityError::Setting { .. })));

    // Two who opened the same home do not overwrite each other's change.
    let mut other = Home::open(&dir).unwrap();
    other.rotate_transport(now(), 100).unwrap();
    assert!(matches!(home.rotate_transport(now(), 100), Err(IdentityError::Mismatch { .. })));
}

#[test]
fn a_change_that_was_cut_short_is_finished_or_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let (dir, copy) = (folder.path().join("north"), folder.path().join("after"));
    Home::init(&dir, &request("north"), now()).unwrap();
    let before = fs::read(dir.join("card.toml")).unwrap();
    let files = ["identity.key", "transport.key", "certificate.pem"];
    let old: Vec<Vec<u8>> = files.iter().map(|f| fs::read(dir.join(f)).unwrap()).collect();
    let mut home = Home::open(&dir).unwrap();
    home.rotate_identity(now(), 100).unwrap();
    fs::rename(&dir, &copy).unwrap();
    let new: Vec<Vec<u8>> = files.iter().map(|f| fs::read(copy.join(f)).unwrap()).collect();
    let after = fs::read(copy.join("card.toml")).unwrap();
    let put = |file: &str, bytes: &[u8]| {
        fs::write(copy.join(file), bytes).unwrap();
        fs::set_permissions(copy.join(file), fs::Permissions::from_mode(0o600)).unwrap();
    };
    // Cut after `n` of the files were staged, before the card was renamed: the old identity stays.
    for n in 0..=files.len() {
        files.iter().zip(&old).for_each(|(file, bytes)| put(file, bytes));
        put("card.toml", &before);
        put("card.toml.next", &after);
        files.iter().zip(&new).take(n).for_each(|(file, bytes)| put(&format!("{file}.next"), bytes));
        assert_eq!(Home::open(&copy).unwrap().card().serial(), 1, "{n}");
        assert!(!copy.join("card.toml.next").exists() && !copy.join("identity.key.next").exists());
    }
    // Cut after the card was renamed and `n` files moved: the new identity holds.
    for n in 0..=files.len() {
        put("card.toml", &after);
        for (i, file) in files.iter().enumerate() {
            let staged = i >= n;
            put(file, if staged { &old[i] } else { &new[i] });
            if staged {
                put(&format!("{file}.next"), &new[i]);
            }
        }
        assert_eq!(Home::open(&copy).unwrap().card().serial(), 2, "{n}");
        assert!(!copy.join("certificate.pem.next").exists());
    }
}

#[test]
fn an_authoritys_certificate_is_installed_if_it_fits() {
    let folder = tempfile::tempdir().unwrap();
    let mut home = Home::init(&folder.path().join("north"), &request("north"), now()).unwrap();
    let public = *home.card().identity();
    let ca = TestAuthority::new("hospitals");
    let error = home.certify(&ca.issue("north.padmm.internal", &key(5).public(), 50), now()).unwrap_err();
    assert!(matches!(error, IdentityError::CertificateKey { .. }), "{error}");
    let error = home.certify(&ca.issue("south.padmm.internal", &public, 50), now()).unwrap_err();
    assert!(matches!(error, IdentityError::CertificateName { .. }), "{error}");
    let pem = ca.issue("north.padmm.internal", &public, 50);
    assert!(matches!(home.certify(&pem, now() + days(60)), Err(IdentityError::Expired { .. })));
    assert_eq!(home.card().serial(), 1);
    home.certify(&pem, now()).unwrap();
    assert_eq!(home.card().serial(), 2);
    assert!(!home.card().certificate().is_self_signed());
    Authority::from_pem(&ca.pem).unwrap().check(home.name(), home.card().certificate(), now()).unwrap();
    // A new transport key leaves the authority's certificate alone.
    home.rotate_transport(now(), 100).unwrap();
    assert_eq!(home.card().certificate().pem(), pem);
}

proptest! {
    #[test]
    fn fingerprints_are_read_as_they_are_written(seed: [u8; 32]) {
        let fingerprint = Fingerprint::of(&SecretKey::from_bytes(&seed).public());
        let text = fingerprint.to_string();
        prop_assert_eq!(text.len(), 47);
        prop_assert_eq!(text.parse::<Fingerprint>().unwrap(), fingerprint);
        prop_assert_eq!(text.replace(' ', "-").parse::<Fingerprint>().unwrap(), fingerprint);
        prop_assert!(text[1..].parse::<Fingerprint>().is_err());
        prop_assert!(text.replacen(|c: char| c.is_ascii_digit(), "x", 1).parse::<Fingerprint>().is_err());
    }
}

#[test]
fn a_fingerprint_stays_the_same_for_ever() {
    let public =
        PublicKey::try_from("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a".to_owned());
    assert_eq!(
        Fingerprint::of(&public.unwrap()).to_string(),
        "46410 86188 36866 92937 06103 93515 60259 21564"
    );
}
