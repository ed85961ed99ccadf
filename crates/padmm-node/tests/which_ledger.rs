//! Which ledger a site's records belong to: the same answer for a plan that is accepted and for a run that starts.

use crate::common;

use std::path::Path;

use common::network::{Consortium, DELTA, EPSILON};
use padmm_node::contract::{Contract, Silence};
use padmm_node::identity::Home;
use padmm_node::ledger::{Opening, RunStart, SiteLedger};
use padmm_node::site::{DataChoice, SiteError, fingerprint, projected_spending};
use padmm_privacy::{Budget, Delta, Epsilon};

/// A home with records, a plan that it has accepted, and no ledger yet.
struct Case {
    consortium: Consortium,
    home: Home,
}

impl Case {
    fn new() -> Self {
        let consortium = Consortium::of(2, "path", Silence::Wait);
        let home = Home::open(&consortium.sites[0].0.folder().join("../..")).unwrap();
        Self { consortium, home }
    }

    fn contract(&self) -> &Contract {
        &self.consortium.contract
    }

    fn records(&self) -> String {
        fingerprint(self.home.dataset_key(), &self.home.dir().join("records.csv")).unwrap()
    }

    fn ledger(&self, name: &str, fingerprint: &str) -> SiteLedger {
        let cap = Budget::new(2.0 * EPSILON, DELTA).unwrap();
        let opening = Opening { data_set: name.to_owned(), fingerprint: fingerprint.to_owned(), cap };
        SiteLedger::create(&self.home.ledgers().join(format!("{name}.ledger")), opening).unwrap()
    }

    fn judged(&self, choice: DataChoice) -> Result<(), SiteError> {
        projected_spending(&self.home, self.contract(), &choice).map(drop)
    }

    fn refused(&self, choice: DataChoice) -> SiteError {
        self.judged(choice).unwrap_err()
    }
}

fn new(name: &str) -> DataChoice {
    DataChoice::New(name.to_owned())
}

fn update(name: &str) -> DataChoice {
    DataChoice::Update(name.to_owned())
}

#[test]
fn records_of_no_ledger_need_a_persons_word_and_those_of_one_need_none() {
    let case = Case::new();
    case.judged(DataChoice::Known).unwrap();
    drop(case.ledger("others", &"0a".repeat(32)));
    let which = case.refused(DataChoice::Known).to_string();
    assert!(which.contains("--data-updates others") && which.contains("--new-data NAME"), "{which}");
    case.judged(update("others")).unwrap();
    case.judged(new("mine")).unwrap();
    assert!(case.refused(update("mine")).to_string().contains("there is no ledger mine"));
    assert!(case.refused(new("others")).to_string().contains("is there already"));
    drop(case.ledger("mine", &case.records()));
    case.judged(DataChoice::Known).unwrap();
}

#[test]
fn two_ledgers_of_the_same_records_are_refused_by_name() {
    let case = Case::new();
    drop(case.ledger("first", &case.records()));
    drop(case.ledger("second", &case.records()));
    let error = case.refused(DataChoice::Known);
    assert!(matches!(error, SiteError::TwoLedgers { .. }), "{error}");
    let said = error.to_string();
    assert!(said.contains("first.ledger") && said.contains("second.ledger"), "{said}");
}

/// Whatever the copy is called, however old it is, and whether its head file came with it or not.
#[test]
fn a_copy_of_a_ledger_is_refused_by_name() {
    let case = Case::new();
    let mut ledger = case.ledger("records", &case.records());
    let path = ledger.path().to_owned();
    let copy = |to: &Path| std::fs::copy(&path, to).unwrap();
    ledger.change_cap(Budget::new(1.0, DELTA).unwrap()).unwrap();
    ledger.change_cap(Budget::new(2.0 * EPSILON, DELTA).unwrap()).unwrap();
    drop(ledger);
    case.judged(DataChoice::Known).unwrap();
    let beside = case.home.ledgers().join("until-may.ledger");
    copy(&beside);
    for choice in [DataChoice::Known, new("others"), update("records")] {
        let error = case.refused(choice);
        assert!(matches!(error, SiteError::CopiedLedger { .. }), "{error}");
        let said = error.to_string();
        assert!(said.contains("records.ledger") && said.contains("until-may.ledger"), "{said}");
    }
    // Under a name that is no ledger's it is not looked at, and answers for nothing.
    std::fs::rename(&beside, case.home.ledgers().join("until-may.backup")).unwrap();
    case.judged(DataChoice::Known).unwrap();
}

#[test]
fn records_that_a_ledger_once_had_are_not_of_other_people() {
    let case = Case::new();
    let mut ledger = case.ledger("records", &case.records());
    ledger.change_data(&"0b".repeat(32)).unwrap();
    drop(ledger);
    let said = case.refused(new("others")).to_string();
    assert!(said.contains("an earlier state") && said.contains("--data-updates records"), "{said}");
    case.judged(update("records")).unwrap();
}

/// A run that was begun with some records is not begun again with others: its rounds would leave a second time.
#[test]
fn a_run_stays_with_the_ledger_that_it_was_begun_in() {
    let case = Case::new();
    let mut ledger = case.ledger("first", &"0c".repeat(32));
    let start = RunStart {
        run: case.contract().hash().to_string(),
        plan_name: "trial".to_owned(),
        site: "ash".to_owned(),
        rounds: 6,
        planned: vec![],
        epsilon_exact: Epsilon::new(EPSILON).unwrap(),
        delta: Delta::new(DELTA).unwrap(),
        noise: "for tests".to_owned(),
    };
    ledger.start_run(&start).unwrap();
    drop(ledger);
    let error = case.refused(new("second"));
    assert!(matches!(error, SiteError::RunElsewhere { .. }), "{error}");
    assert!(error.to_string().contains("first.ledger"), "{error}");
}

#[test]
fn a_cap_that_is_not_the_ledgers_is_refused_as_in_a_run() {
    let case = Case::new();
    let mut ledger = case.ledger("records", &case.records());
    ledger.change_cap(Budget::new(1.0, DELTA).unwrap()).unwrap();
    drop(ledger);
    let error = case.refused(DataChoice::Known);
    assert!(matches!(error, SiteError::Cap { .. }), "{error}");
}
