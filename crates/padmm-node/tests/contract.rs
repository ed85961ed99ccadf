//! Contracts: what makes one, what changes its hash, and every way in which one is refused.

use crate::common;

use padmm_core::algorithm::{
    AlgorithmKind, CONSENSUS_NEWTON, DP_ADMM, LINEARIZED, P_ADMM, PRIVATE_GRADIENT, TOKEN,
};
use std::fs;
use std::path::Path;

use common::{TestAuthority, days, key, name, now, own_certificate, schema};
use padmm_core::calibration::{Calibration, NetworkFacts};
use padmm_core::graph::GraphSpec;
use padmm_core::loss::Loss;
use padmm_core::plan::{AccountantKind, Output, PlanDraft, PlanError};
use padmm_core::regularizer::Regularizer;
use padmm_core::schema::{LabelDraft, Schema, SchemaDraft};
use padmm_node::contract::{
    Acceptance, Contract, ContractDraft, ContractError, MAX_SITES, PlanHash, Silence, SiteEntry, Trust,
    difference, schema_hash,
};
use padmm_node::identity::{Card, Certificate, Expiry, Fingerprint, IdentityError, SecretKey, Signature};
use padmm_privacy::SensitivityBasis;

const RECORDS: [usize; 4] = [303, 294, 123, 200];

fn sites() -> Vec<SiteEntry> {
    let names = ["cleveland", "budapest", "long-beach", "zurich"];
    let entry = |(i, &site): (usize, &&str)| SiteEntry {
        name: name(site),
        records: RECORDS[i],
        fingerprint: Fingerprint::of(&key(i as u8 + 1).public()),
    };
    names.iter().enumerate().map(entry).collect()
}

fn try_draft_on(graph: &str, settings: PlanDraft) -> Result<ContractDraft, ContractError> {
    let graph: GraphSpec = graph.parse().unwrap();
    ContractDraft::new(name("heart"), schema(), settings, sites(), &graph, Silence::Wait, None)
}

fn draft_on(graph: &str, settings: PlanDraft) -> ContractDraft {
    try_draft_on(graph, settings).unwrap()
}

fn draft() -> ContractDraft {
    draft_on("ring", PlanDraft::default())
}

fn refused(change: impl FnOnce(&mut ContractDraft)) -> ContractError {
    let mut draft = draft();
    change(&mut draft);
    draft.check().unwrap_err()
}

#[test]
fn a_contract_says_who_talks_to_whom_and_on_which_terms() {
    for graph in
        ["ring", "path", "star", "complete", "edges:zurich-budapest,budapest-cleveland,cleveland--long-beach"]
    {
        let contract = draft_on(graph, PlanDraft::default()).check().unwrap();
        let names: Vec<String> = sites().iter().map(|s| s.name.to_string()).collect();
        let built = graph.parse::<GraphSpec>().unwrap().build(4, &names, 1).unwrap();
        assert_eq!(*contract.graph(), built);
        assert_eq!(contract.edges(), built.edges().collect::<Vec<_>>());
        let (schema, plan) = (schema(), PlanDraft::default().check().unwrap());
        let space = schema.feature_space();
        let network = NetworkFacts { graph: &built, n_records: &RECORDS, space: &space, norm_bound: 1.0 };
        // The plan without a penalty: what is frozen in the contract is what a simulation of the network derives.
        let calibration = Calibration::derive(&plan, &network).unwrap();
        assert_eq!(format!("{calibration:?}"), format!("{:?}", contract.calibration()), "{graph}");
        assert_eq!(contract.plan().settings().penalty, Some(calibration.penalty));
    }
    let contract = draft().check().unwrap();
    assert_eq!(contract.site_index(&name("long-beach")).unwrap(), 2);
    assert_eq!(contract.neighbours(0), [1, 3]);
    assert!(matches!(contract.site_index(&name("basel")), Err(ContractError::UnknownSite { .. })));
    assert_eq!(contract.space().n_features(), 6);
    assert_eq!((contract.name(), contract.silence()), (&name("heart"), Silence::Wait));
    assert!(contract.authority().is_none());
}

#[test]
fn the_hash_is_that_of_what_is_said_and_not_of_how() {
    let contract = draft().check().unwrap();
    let text = contract.to_toml();
    let at = Path::new("plan.toml");
    let read = Contract::from_toml(&text, at).unwrap();
    assert_eq!((read.hash(), &read), (contract.hash(), &contract));
    assert!(text.contains(&contract.hash().to_string()), "its comment says it");
    let plain: String =
        text.lines().filter(|l| !l.starts_with('#')).map(|l| format!("{l}  # note\n\n")).collect();
    assert_ne!(plain, text);
    assert_eq!(Contract::from_toml(&plain, at).unwrap().hash(), contract.hash());
    let compact = toml::to_string(contract.draft()).unwrap();
    assert_eq!(Contract::from_toml(&compact, at).unwrap().hash(), contract.hash());
    let whole = text.replace("epsilon = 5.0", "epsilon = 5");
    assert_ne!(whole, text);
    assert_eq!(Contract::from_toml(&whole, at).unwrap().hash(), contract.hash());
    // The same edges in another order and direction.
    let mut turned = draft();
    turned.edges.reverse();
    turned.edges.iter_mut().for_each(|(a, b)| std::mem::swap(a, b));
    assert_eq!(turned.check().unwrap().hash(), contract.hash());
    let json = serde_json::to_string(&contract).unwrap();
    assert_eq!(serde_json::from_str::<Contract>(&json).unwrap(), contract);
    let hash: PlanHash = contract.hash().to_string().try_into().unwrap();
    assert_eq!(hash, contract.hash());
}

/// Another schema with its hash.
fn with_schema(draft: &mut ContractDraft, change: impl FnOnce(&mut SchemaDraft)) {
    let mut schema: SchemaDraft = draft.schema.clone().into();
    change(&mut schema);
    draft.schema = schema.check().unwrap();
    draft.schema_hash = schema_hash(&draft.schema);
}

type Change = (&'static str, fn(&mut ContractDraft));

#[test]
fn every_field_changes_the_hash_and_is_named_as_a_difference() {
    let contract = draft().check().unwrap();
    assert!(difference(&contract, &contract).is_empty());
    let changes: Vec<Change> = vec![
        ("name", |d| d.name = name("other")),
        ("edges.cleveland--long-beach", |d| d.edges.push(("cleveland".into(), "long-beach".into()))),
        ("edges.cleveland--budapest", |d| drop(d.edges.remove(0))),
        ("settings.algorithm", |d| d.settings.algorithm = LINEARIZED),
        ("settings.rounds", |d| d.settings.rounds = 40),
        ("settings.penalty", |d| d.settings.penalty = Some(0.5)),
        ("settings.decay", |d| d.settings.decay = 1.0),
        ("settings.epsilon", |d| d.settings.epsilon = 4.0),
        ("settings.delta", |d| d.settings.delta = 1e-5),
        ("settings.accountant", |d| d.settings.accountant = AccountantKind::Paper),
        ("settings.loss", |d| d.settings.loss = Loss::Hinge),
        ("settings.regularizer.l2.strength", |d| d.settings.regularizer = Regularizer::L2 { strength: 0.1 }),
        ("settings.tolerance", |d| d.settings.tolerance = Some(1e-5)),
        ("settings.output", |d| d.settings.output = Output::Last),
        ("silence.policy", |d| d.silence = Silence::Leave { after_seconds: 60 }),
        ("site.zurich.records", |d| d.sites[3].records += 1),
        ("site.zurich.fingerprint", |d| d.sites[3].fingerprint = Fingerprint::of(&key(9).public())),
        ("site.basel.name", |d| {
            d.sites[3].name = name("basel");
            d.edges
                .iter_mut()
                .flat_map(|(a, b)| [a, b])
                .filter(|n| *n == "zurich")
                .for_each(|n| *n = "basel".into());
        }),
        ("site (order)", |d| d.sites.swap(0, 3)),
        ("trust.ca", |d| d.trust = Some(Trust { ca: TestAuthority::new("hospitals").pem })),
        ("schema.norm_bound", |d| with_schema(d, |s| s.norm_bound = 2.0)),
        ("schema.intercept", |d| with_schema(d, |s| s.intercept = false)),
        ("schema.columns.age.upper", |d| with_schema(d, |s| s.columns[0].upper = Some(99.0))),
        ("schema.missing_values", |d| with_schema(d, |s| s.missing_values.push("none".into()))),
    ];
    for (field, change) in changes {
        let mut changed = draft();
        change(&mut changed);
        let changed = changed.check().unwrap_or_else(|error| panic!("{field}: {error}"));
        assert_ne!(changed.hash(), contract.hash(), "{field}");
        let found = difference(&contract, &changed);
        assert!(found.iter().any(|d| d.field == field), "{field}: {found:?}");
    }
    let mut fewer = draft();
    fewer.settings.rounds = 40;
    let found = difference(&contract, &fewer.check().unwrap());
    assert_eq!(
        found.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["settings.rounds: 50 here, 40 there"]
    );
    let with_tolerance =
        draft_on("ring", PlanDraft { tolerance: Some(1e-5), ..contract.draft().settings.clone() });
    let found = difference(&contract, &with_tolerance.check().unwrap());
    assert_eq!(found[0].to_string(), "settings.tolerance: absent here, 0.00001 there");
}

#[test]
fn settings_that_sites_cannot_agree_to_are_refused() {
    use ContractError as E;
    assert!(matches!(refused(|d| d.format = 2), E::Format { found: 2, .. }));
    assert!(matches!(refused(|d| d.program = "0.0.0".into()), E::Program { .. }));
    assert!(matches!(refused(|d| d.schema_hash.replace_range(0..1, "x")), E::SchemaHash { .. }));
    assert!(matches!(refused(|d| d.settings.epsilon = -1.0), E::Settings(_)));
    assert!(matches!(refused(|d| d.settings.penalty = None), E::NoPenalty));
    assert!(matches!(refused(|d| d.settings.sensitivity = SensitivityBasis::Paper), E::Sensitivity));
    assert!(matches!(refused(|d| d.settings.loss = Loss::Huber { width: 0.1 }), E::Label { .. }));
    // What sites cannot run between them is refused where a plan is made, and wherever it is read.
    for kind in padmm_baselines::ALL {
        let between = [P_ADMM, CONSENSUS_NEWTON, PRIVATE_GRADIENT, LINEARIZED].contains(&kind);
        let exact = between || [DP_ADMM, TOKEN].contains(&kind);
        let graph = kind.graph_needed().unwrap_or("ring");
        let settings = PlanDraft { algorithm: kind, penalty: Some(0.1), ..PlanDraft::default() };
        let mut written = draft_on(graph, PlanDraft { algorithm: P_ADMM, ..settings.clone() });
        written.settings.algorithm = kind;
        for made in [try_draft_on(graph, settings).and_then(|d| d.check()), written.check()] {
            match made {
                Ok(_) => assert!(between, "{kind:?}"),
                Err(E::NotExact { algorithm }) => assert!(!exact, "{algorithm}"),
                Err(error @ E::NotBetweenSites { .. }) => {
                    assert!(exact && !between, "{kind:?}");
                    assert!(
                        error.to_string().ends_with(&format!("use {}", AlgorithmKind::names_between_sites())),
                        "{error}"
                    );
                }
                Err(other) => panic!("{kind:?}: {other}"),
            }
        }
    }
}

/// The plan states what the noise was derived from: the cap of the schema that it carries, and no other.
#[test]
fn a_plan_for_counts_takes_the_cap_from_its_schema_and_keeps_it() {
    use ContractError as E;
    let with_label = |lower: f64, upper: f64| -> Schema {
        let mut draft = SchemaDraft::from(schema());
        let (lower, upper) = (Some(lower), Some(upper));
        let (column, kind) = ("visits".to_owned(), Some("numeric".to_owned()));
        draft.label = LabelDraft { column, kind, lower, upper, ..LabelDraft::default() };
        draft.check().unwrap()
    };
    let made = |schema: Schema, algorithm: AlgorithmKind| {
        let settings = PlanDraft { algorithm, loss: Loss::Poisson { cap: 0.0 }, ..PlanDraft::default() };
        let graph: GraphSpec = "ring".parse().unwrap();
        ContractDraft::new(name("heart"), schema, settings, sites(), &graph, Silence::Wait, None)
    };
    for algorithm in [P_ADMM, CONSENSUS_NEWTON, PRIVATE_GRADIENT, LINEARIZED] {
        let draft = made(with_label(0.0, 25.0), algorithm).unwrap();
        assert_eq!(draft.settings.loss, Loss::Poisson { cap: 25.0 });
        let contract = draft.clone().check().unwrap();
        let again = Contract::from_toml(&contract.to_toml(), Path::new("plan.toml")).unwrap();
        assert_eq!((again.hash(), again.plan().settings().loss), (contract.hash(), draft.settings.loss));
        for cap in [0.0, 24.0, 26.0] {
            let mut altered = draft.clone();
            altered.settings.loss = Loss::Poisson { cap };
            match altered.check().unwrap_err() {
                E::NoCap { .. } => assert!(cap < 1.0),
                E::Settings(PlanError::Counts { upper, .. }) => {
                    assert!(cap > 1.0 && (upper - 25.0).abs() < 1e-12)
                }
                other => panic!("{algorithm:?}, {cap}: {other}"),
            }
        }
        assert!(matches!(made(with_label(1.0, 25.0), algorithm), Err(E::Settings(PlanError::Counts { .. }))));
        assert!(matches!(made(schema(), algorithm).and_then(|d| d.check()), Err(E::Label { .. })));
        // A record's gradient is twenty-five times as long as with a slope of 1.
        if algorithm == P_ADMM {
            let bound = |draft: ContractDraft| {
                let contract = draft.check().unwrap();
                contract.calibration().agents[0].noise.as_ref().unwrap().premise().unwrap().gradient_bound
            };
            let quantile = ContractDraft::new(
                name("heart"),
                with_label(0.0, 25.0),
                PlanDraft { loss: Loss::Quantile { level: 0.75, width: 0.05 }, ..PlanDraft::default() },
                sites(),
                &"ring".parse().unwrap(),
                Silence::Wait,
                None,
            );
            let ratio = bound(draft) / bound(quantile.unwrap());
            assert!((ratio - 25.0 / 0.75).abs() < 1e-9, "{ratio}");
        }
    }
}

#[test]
fn sites_edges_and_silence_are_checked() {
    use ContractError as E;
    assert!(matches!(refused(|d| d.sites.truncate(1)), E::TooFewSites { found: 1 }));
    assert!(matches!(refused(|d| d.sites[1].name = name("zurich")), E::RepeatedSite { .. }));
    assert!(matches!(refused(|d| d.sites[1].records = 0), E::NoRecords { .. }));
    let twins = refused(|d| d.sites[1].fingerprint = d.sites[0].fingerprint).to_string();
    assert!(twins.contains("cleveland") && twins.contains("budapest"), "{twins}");
    let many = refused(|d| {
        d.sites = (0..=MAX_SITES)
            .map(|i| SiteEntry { name: name(&format!("s{i}")), ..d.sites[0].clone() })
            .collect();
    });
    assert!(matches!(many, E::TooManySites { found: 1001 }));
    let apart = refused(|d| d.edges.truncate(1)).to_string();
    assert!(apart.contains("zurich") && apart.contains("not connected"), "{apart}");
    let stranger = refused(|d| d.edges[0].0 = "zurick".into()).to_string();
    assert!(stranger.contains("did you mean `zurich`"), "{stranger}");
    let short = refused(|d| d.silence = Silence::Leave { after_seconds: 4 });
    assert!(matches!(short, E::Silence { found: 4, least: 5 }));
    let authority = refused(|d| d.trust = Some(Trust { ca: "nobody".into() }));
    assert!(matches!(authority, E::Identity(IdentityError::NotAnAuthority { .. })));
}

#[test]
fn files_that_are_no_plans_say_where() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.toml");
    assert!(matches!(Contract::read(&path), Err(ContractError::Read { .. })));
    let text = draft().check().unwrap().to_toml();
    for (from, to, says) in [
        ("rounds = 50", "rounds = \"many\"", "line"),
        ("policy = \"wait\"", "policy = \"hope\"", "hope"),
        ("[settings]", "surprise = 1\n[settings]", "surprise"),
        ("epsilon = 5.0", "epsilon = 0.0", "`epsilon` is 0"),
        ("records = 303", "records = -3", "line"),
    ] {
        fs::write(&path, text.replacen(from, to, 1)).unwrap();
        let error = Contract::read(&path).unwrap_err().to_string();
        assert!(error.contains("plan.toml") && error.contains(says), "{error}");
    }
    fs::write(&path, &text).unwrap();
    assert_eq!(Contract::read(&path).unwrap().to_toml(), text);
    let leaving =
        ContractDraft { silence: Silence::Leave { after_seconds: 600 }, ..draft() }.check().unwrap();
    assert!(leaving.to_toml().contains("after-seconds = 600"));
    assert_eq!(Contract::from_toml(&leaving.to_toml(), &path).unwrap(), leaving);
}

#[test]
fn an_acceptance_is_one_sites_word_on_one_plan() {
    let contract = draft().check().unwrap();
    let (zurich, own) = (name("zurich"), key(4));
    let word = Acceptance::accept(&contract, &zurich, &own).unwrap();
    word.verify(&contract, &own.public()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zurich.accept");
    fs::write(&path, word.to_toml()).unwrap();
    assert_eq!(Acceptance::read(&path).unwrap(), word);
    assert!(matches!(Acceptance::read(&folder.path().join("absent")), Err(ContractError::Read { .. })));

    let with_other_key = Acceptance::accept(&contract, &zurich, &key(1)).unwrap_err();
    assert!(matches!(with_other_key, ContractError::OtherFingerprint { .. }), "{with_other_key}");
    let error = word.verify(&contract, &key(1).public()).unwrap_err();
    assert!(matches!(error, ContractError::OtherFingerprint { .. }), "{error}");
    let stranger = Acceptance::accept(&contract, &name("basel"), &own).unwrap_err();
    assert!(matches!(stranger, ContractError::UnknownSite { .. }));
    let other = ContractDraft { name: name("second"), ..draft() }.check().unwrap();
    assert!(matches!(word.verify(&other, &own.public()), Err(ContractError::OtherPlan { .. })));
    // The hash of the other plan under the old signature, another site's name, and a signature of nobody.
    let moved = Acceptance { plan: other.hash(), ..word.clone() };
    assert!(matches!(moved.verify(&other, &own.public()), Err(ContractError::AcceptanceSignature { .. })));
    let forged = Acceptance { site: name("cleveland"), ..word.clone() };
    assert!(matches!(
        forged.verify(&contract, &key(1).public()),
        Err(ContractError::AcceptanceSignature { .. })
    ));
    let empty = Acceptance { signature: Signature([0; 64]), ..word.clone() };
    assert!(matches!(empty.verify(&contract, &own.public()), Err(ContractError::AcceptanceSignature { .. })));
    let newer = Acceptance { format: 2, ..word };
    assert!(matches!(newer.verify(&contract, &own.public()), Err(ContractError::Format { .. })));
}

fn card(site: &str, identity: &SecretKey, certificate: &Certificate) -> Card {
    Card::sign(identity, key(77).public(), &name(site), 1, vec![], None, certificate).unwrap()
}

#[test]
fn cards_must_be_those_that_the_contract_means() {
    let contract = draft().check().unwrap();
    let (own, other) = (key(4), key(5));
    let good = card("zurich", &own, &own_certificate("zurich", &own, 100));
    assert_eq!(contract.check_card(&good, now()).unwrap(), Expiry::Fine);
    let impostor = card("zurich", &other, &own_certificate("zurich", &other, 100));
    let error = contract.check_card(&impostor, now()).unwrap_err();
    assert!(matches!(error, ContractError::OtherFingerprint { .. }), "{error}");
    let stranger = card("basel", &own, &own_certificate("basel", &own, 100));
    assert!(matches!(contract.check_card(&stranger, now()), Err(ContractError::UnknownSite { .. })));
    let late = contract.check_card(&good, now() + days(200)).unwrap_err();
    assert!(matches!(late, ContractError::Identity(IdentityError::Expired { .. })), "{late}");

    let ca = TestAuthority::new("hospitals");
    let trusting = ContractDraft { trust: Some(Trust { ca: ca.pem.clone() }), ..draft() }.check().unwrap();
    assert_eq!(Contract::from_toml(&trusting.to_toml(), Path::new("p")).unwrap(), trusting);
    let error = trusting.check_card(&good, now()).unwrap_err();
    assert!(matches!(error, ContractError::Identity(IdentityError::OtherAuthority { .. })), "{error}");
    let issued =
        Certificate::from_pem("zurich", &ca.issue("zurich.padmm.internal", &own.public(), 20)).unwrap();
    let expiry = trusting.check_card(&card("zurich", &own, &issued), now()).unwrap();
    assert_eq!(expiry, Expiry::Soon { days: 20 });
}
