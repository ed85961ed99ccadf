//! Bugs that were planted on purpose. Each double is the shipped program with one thing wrong; the audit must find it, by the check that
//! is there for it, and must find nothing in the program as it is shipped.

mod doubles;

use doubles::*;
use padmm_audit::*;
use padmm_core::algorithm::{CONSENSUS_NEWTON, P_ADMM, PRIVATE_GRADIENT};

const SEED: u64 = 11;

fn request(epsilon: f64, tests: usize) -> AuditRequest {
    AuditRequest { algorithm: P_ADMM, epsilon, delta: 1e-4, tests, confidence: 0.999, rounds: 4, seed: SEED }
}

/// An audit of a double. Refusals are the command's business and have a test of their own.
fn verdict(target: &dyn Target, epsilon: f64, tests: usize) -> Verdict {
    audit(target, &request(epsilon, tests), Check::passed(), &|_| ()).unwrap().0
}

/// Audits of the algorithms that release sums of clipped terms.
fn verdicts_on_sums(target: &dyn Target, epsilon: f64, tests: usize) -> [Verdict; 2] {
    [PRIVATE_GRADIENT, CONSENSUS_NEWTON].map(|algorithm| {
        let request = AuditRequest { algorithm, ..request(epsilon, tests) };
        audit(target, &request, Check::passed(), &|_| ()).unwrap().0
    })
}

/// The audit fails, and the named part of it does.
fn caught(verdict: &Verdict, by: &str) {
    let failed = match by {
        "bound" => verdict.exceeds_claim(),
        check => verdict.checks.all().iter().any(|(name, c)| *name == check && !c.is_passed()),
    };
    let summary = verdict.to_json();
    assert!(failed, "seed {SEED}: not caught by {by}: {summary} {:?}", verdict.findings());
    assert_eq!(summary["passed"], false);
    assert!(!verdict.findings().is_empty());
}

#[test]
fn the_shipped_program_is_found_sound() {
    for algorithm in Canary::algorithms() {
        // A canary that is tight exceeds its claim as often as the confidence allows, so that is high here.
        let request = AuditRequest { algorithm, confidence: 1.0 - 1e-6, ..request(1.0, 4000) };
        let (verdict, trials) = audit(&Shipped, &request, Check::passed(), &|_| ()).unwrap();
        assert!(verdict.is_passed(), "seed {SEED}, {}: {:?}", algorithm.name(), verdict.findings());
        assert_eq!(trials.len(), 4000);
    }
}

#[test]
fn half_the_sensitivity_is_caught() {
    caught(&verdict(&MoreRecords(2.0), 1.0, 10_000), "bound");
}

#[test]
fn a_number_of_records_that_is_off_by_a_fifth_is_caught() {
    caught(&verdict(&MoreRecords(1.2), 5.0, 20_000), "bound");
}

#[test]
fn rows_that_are_too_long_are_caught() {
    caught(&verdict(&LongRows, 5.0, 10_000), "bound");
}

#[test]
fn the_un_noised_iterate_in_the_next_round_is_caught() {
    let verdict = verdict(&UnNoised, 1.0, 10_000);
    caught(&verdict, "bound");
    caught(&verdict, "whiteness");
}

#[test]
fn decay_of_the_deviation_in_place_of_the_variance_is_caught() {
    caught(&verdict(&WrongDecay, 1.0, 4000), "whiteness");
}

#[test]
fn a_round_that_is_released_twice_is_caught() {
    caught(&verdict(&Forgetful, 1.0, 1000), "one_payload");
}

#[test]
fn the_same_noise_in_every_round_is_caught() {
    caught(&verdict(&SameNoise, 1.0, 1000), "whiteness");
}

#[test]
fn the_same_noise_in_every_run_is_caught() {
    caught(&verdict(&SameStream, 1.0, 1000), "whiteness");
}

#[test]
fn a_charge_that_is_skipped_is_caught() {
    caught(&verdict(&NoCharge, 1.0, 1000), "one_payload");
}

#[test]
fn floating_point_noise_is_caught_however_it_shows() {
    // By what it says of itself, by leaving the grid, and by bits that single precision does not have.
    caught(&verdict(&FloatingPoint::Declared, 1.0, 1000), "whiteness");
    caught(&verdict(&FloatingPoint::OffTheGrid, 1.0, 1000), "whiteness");
    caught(&verdict(&FloatingPoint::SinglePrecision, 1.0, 5000), "whiteness");
}

#[test]
fn a_term_of_a_sum_that_is_too_long_is_caught() {
    verdicts_on_sums(&Twice, 1.0, 10_000).iter().for_each(|verdict| caught(verdict, "bound"));
}

#[test]
fn too_little_noise_on_one_of_the_sums_is_caught() {
    verdicts_on_sums(&SmallFirst, 1.0, 2000).iter().for_each(|verdict| caught(verdict, "whiteness"));
}

#[test]
fn a_sum_that_is_released_twice_or_for_nothing_is_caught() {
    verdicts_on_sums(&Forgetful, 1.0, 1000).iter().for_each(|verdict| caught(verdict, "one_payload"));
    verdicts_on_sums(&NoCharge, 1.0, 1000).iter().for_each(|verdict| caught(verdict, "one_payload"));
}

#[test]
fn the_same_noise_on_every_sum_is_caught() {
    verdicts_on_sums(&SameNoise, 1.0, 1000).iter().for_each(|verdict| caught(verdict, "whiteness"));
}

#[test]
fn a_certificate_that_fails_with_the_records_is_caught() {
    caught(&verdict(&Oracle, 1.0, 1000), "stopping");
    // Found under every plan that is tried, also where the shipped solver has no threshold of its own.
    let check = stopping(&Oracle, SEED).unwrap();
    for plan in ["P-ADMM with the loss logistic", "P-ADMM with the loss hinge", "linearised P-ADMM"] {
        assert!(check.findings.iter().any(|f| f.starts_with(plan)), "seed {SEED}: {plan}: {check:?}");
    }
}

#[test]
fn a_refusal_that_one_record_turns_is_caught() {
    let answer = |accepts: bool| Ok::<_, ()>(Answer { accepts, sends: vec![] });
    let word = |file: &[u8], word: &str| String::from_utf8_lossy(file).contains(word);
    let one_class = |file: &[u8]| answer(word(file, ",yes") && word(file, ",no"));
    let check = refusals(one_class).unwrap();
    assert!(check.findings.iter().any(|f| f.contains("one class")), "{check:?}");
    let missing = refusals(|file| answer(!word(file, "?"))).unwrap();
    assert_eq!(missing.findings.len(), 3, "{missing:?}");
    let counts = |file: &[u8]| {
        let usable = String::from_utf8_lossy(file).lines().filter(|l| !l.contains('?')).count();
        Ok::<_, ()>(Answer { accepts: true, sends: usable.to_string().into_bytes() })
    };
    assert!(refusals(counts).unwrap().findings.iter().all(|f| f.contains("sends depends on a missing")));
    assert!(
        refusals(|_| answer(true)).unwrap().is_passed() && refusals(|_| answer(false)).unwrap().is_passed()
    );
}
