//! The order of a release, and what happens when a step of it fails.

#![allow(clippy::float_cmp, reason = "what is meant is equality to the bit")]

use padmm_privacy::*;
use std::sync::{Arc, Mutex};

type Log = Arc<Mutex<Vec<String>>>;

fn note(log: &Log, what: impl Into<String>) {
    log.lock().unwrap().push(what.into());
}

/// Returns the same integer for every coordinate and records that it was asked.
struct FakeNoise {
    log: Log,
    value: i64,
}

impl NoiseSource for FakeNoise {
    fn fill(&mut self, scale: f64, out: &mut [i64]) -> Result<(), PrivacyError> {
        assert!((1.0..1e15).contains(&scale));
        note(&self.log, "draw");
        out.fill(self.value);
        Ok(())
    }
    fn description(&self) -> &'static str {
        "fake"
    }
    fn is_secure(&self) -> bool {
        false
    }
}

struct RecordingLedger {
    log: Log,
    inner: MemoryLedger,
    /// How many charges it takes.
    room: usize,
}

impl Ledger for RecordingLedger {
    fn debit(&mut self, debit: &Debit) -> Result<(), PrivacyError> {
        note(&self.log, "debit");
        if self.debits().len() == self.room {
            return Err(PrivacyError::LedgerFailed { reason: "no room".into() });
        }
        self.inner.debit(debit)
    }
    fn debits(&self) -> &[Debit] {
        self.inner.debits()
    }
}

struct RecordingMechanism {
    log: Log,
    inner: GridGaussian,
}

impl Mechanism for RecordingMechanism {
    fn describe(&self, round: u32) -> Result<Event, PrivacyError> {
        note(&self.log, "describe");
        self.inner.describe(round)
    }
    fn draw(&self, round: u32, source: &mut dyn NoiseSource) -> Result<Drawn, PrivacyError> {
        self.inner.draw(round, source)
    }
    fn seal(&self, round: u32, computed: Computed, drawn: Drawn) -> Result<Payload, PrivacyError> {
        note(&self.log, "seal");
        self.inner.seal(round, computed, drawn)
    }
    fn report(&self) -> Option<PrivacyReport> {
        self.inner.report()
    }
    fn is_exact(&self) -> bool {
        self.inner.is_exact()
    }
}

const TOLERANCE: f64 = 1e-9;
const FEATURES: usize = 3;
const ROUNDS: u32 = 4;

fn schedule() -> NoiseSchedule {
    let inputs =
        SensitivityInputs { gradient_bound: 1.0, n_records: 100, tolerance: TOLERANCE, modulus: 0.5 };
    NoiseSchedule::calibrate(&NoiseRequest {
        budget: Budget::new(1.0, 1e-5).unwrap(),
        conversion: Conversion::Exact,
        decay: Decay::new(ROUNDS, 0.9).unwrap(),
        sensitivity: Sensitivity::per_record(&inputs).unwrap(),
        n_features: FEATURES,
        scales: None,
    })
    .unwrap()
}

fn mechanism() -> GridGaussian {
    GridGaussian::new(schedule(), RequiredCertificate { modulus: 0.5, tolerance: TOLERANCE }).unwrap()
}

fn gate_with(ledger: MemoryLedger, noise: i64) -> (Gate, Log) {
    gate_with_room(usize::MAX, ledger, noise)
}

fn gate_with_room(room: usize, ledger: MemoryLedger, noise: i64) -> (Gate, Log) {
    let log = Log::default();
    let gate = Gate::new(
        "run".into(),
        "site".into(),
        Box::new(RecordingMechanism { log: log.clone(), inner: mechanism() }),
        Box::new(FakeNoise { log: log.clone(), value: noise }),
        Box::new(RecordingLedger { log: log.clone(), inner: ledger, room }),
    );
    (gate, log)
}

fn good() -> Certified {
    Certified { point: vec![0.25, -1.0, 3.0], residual: 0.0 }
}

fn steps(log: &Log) -> Vec<String> {
    std::mem::take(&mut *log.lock().unwrap())
}

fn release(
    gate: &mut Gate,
    log: &Log,
    round: u32,
    certified: Certified,
) -> Result<Release<Payload>, PrivacyError> {
    gate.release(round, |_| {
        note(log, "compute");
        Ok(certified)
    })
}

#[test]
fn the_order_is_describe_debit_draw_compute_seal() {
    let (mut gate, log) = gate_with(MemoryLedger::new(), 5);
    for round in 1..=ROUNDS {
        let released = release(&mut gate, &log, round, good()).unwrap();
        assert_eq!(steps(&log), ["describe", "debit", "draw", "compute", "seal"]);
        assert_eq!((released.round(), released.site()), (round, "site"));
        let exponent = schedule().grid_exponent(round).unwrap();
        let step = 2f64.powi(exponent);
        let expected: Vec<i64> = good().point.iter().map(|v| (v / step).round() as i64 + 5).collect();
        assert_eq!(released.value(), &Payload::Grid { exponent, values: expected.clone() });
        let public = PublicVector::from(&released);
        assert_eq!(public.as_slice(), expected.iter().map(|&v| v as f64 * step).collect::<Vec<_>>());
    }
    assert_eq!(gate.debits().len(), ROUNDS as usize);
    assert_eq!(gate.noise_description(), "fake");
    assert!(!gate.noise_is_secure());
    // The charges of the recorded ledger, added up, give the reported epsilon.
    let report = gate.report().unwrap();
    let charges = gate.debits().iter().map(|debit| debit.event.rho().unwrap().value());
    let rho = ZcdpRho::new(charges.fold(0.0, outward::add_up)).unwrap();
    let remaining = Delta::new(outward::sub_down(report.delta, report.delta_slack)).unwrap();
    assert_eq!(gdp_epsilon(rho_to_mu(rho), remaining).value(), report.epsilon_exact);
    let error = release(&mut gate, &log, ROUNDS + 1, good()).unwrap_err();
    assert_eq!(error, PrivacyError::RoundOutsideSchedule { round: 5, rounds: 4 });
    assert_eq!(steps(&log), ["describe"]);
}

#[test]
fn a_refused_debit_draws_and_computes_nothing() {
    let (mut gate, log) = gate_with_room(1, MemoryLedger::new(), 0);
    release(&mut gate, &log, 1, good()).unwrap();
    steps(&log);
    let error = release(&mut gate, &log, 2, good()).unwrap_err();
    assert!(matches!(error, PrivacyError::LedgerFailed { .. }), "{error}");
    assert_eq!(steps(&log), ["describe", "debit"]);
    assert_eq!((gate.debits().len(), gate.next_round()), (1, 2));
}

#[test]
fn a_failed_compute_seals_nothing_and_stays_charged() {
    let (mut gate, log) = gate_with(MemoryLedger::new(), 0);
    let result: Result<_, PrivacyError> = gate.release(1, |drawn| {
        assert!(drawn.visible_noise().is_none(), "output perturbation hides its noise from the computation");
        assert_eq!(format!("{drawn:?}"), "Drawn(round 1, hidden)");
        Err::<Certified, _>(PrivacyError::CertificateMissing)
    });
    assert!(result.is_err());
    assert_eq!(steps(&log), ["describe", "debit", "draw"]);
    assert_eq!(gate.debits().len(), 1);
    assert!(release(&mut gate, &log, 1, good()).is_err(), "the round is over");
    assert!(release(&mut gate, &log, 2, good()).is_ok());
}

#[test]
fn rounds_are_neither_repeated_nor_skipped() {
    let (mut gate, log) = gate_with(MemoryLedger::new(), 0);
    for wrong in [0, 2, u32::MAX] {
        let error = release(&mut gate, &log, wrong, good()).unwrap_err();
        assert_eq!(error, PrivacyError::RoundOutOfOrder { expected: 1, found: wrong });
    }
    release(&mut gate, &log, 1, good()).unwrap();
    steps(&log);
    let error = release(&mut gate, &log, 1, good()).unwrap_err();
    assert_eq!(error, PrivacyError::RoundOutOfOrder { expected: 2, found: 1 });
    assert!(steps(&log).is_empty(), "refused before anything is described, charged or drawn");
}

#[test]
fn a_gate_continues_where_its_ledger_ends() {
    let mut ledger = MemoryLedger::new();
    for (run, round) in [("run", 1), ("run", 2), ("other", 7)] {
        let event = mechanism().describe(1).unwrap();
        ledger.debit(&Debit { run: run.into(), site: "site".into(), round, event }).unwrap();
    }
    let (mut gate, log) = gate_with(ledger, 0);
    assert!(release(&mut gate, &log, 2, good()).is_err());
    assert!(release(&mut gate, &log, 3, good()).is_ok());
}

/// Outlives its gate, like a file.
#[derive(Clone, Default)]
struct Kept {
    debits: Vec<Debit>,
    payloads: Arc<Mutex<Vec<(Debit, Payload)>>>,
    is_full: bool,
}

impl Kept {
    fn reopened(&self) -> Self {
        let debits = self.payloads.lock().unwrap().iter().map(|kept| kept.0.clone()).collect();
        Self { debits, ..self.clone() }
    }
}

impl Ledger for Kept {
    fn debit(&mut self, debit: &Debit) -> Result<(), PrivacyError> {
        self.debits.push(debit.clone());
        Ok(())
    }
    fn record(&mut self, debit: &Debit, payload: &Payload) -> Result<(), PrivacyError> {
        if self.is_full {
            return Err(PrivacyError::LedgerFailed { reason: "disk full".into() });
        }
        self.payloads.lock().unwrap().push((debit.clone(), payload.clone()));
        Ok(())
    }
    fn recorded(&self, run: &str, site: &str, round: u32) -> Result<Option<Payload>, PrivacyError> {
        let payloads = self.payloads.lock().unwrap();
        let same = |d: &Debit| (d.run.as_str(), d.site.as_str(), d.round) == (run, site, round);
        Ok(payloads.iter().find(|(d, _)| same(d)).map(|kept| kept.1.clone()))
    }
    fn debits(&self) -> &[Debit] {
        &self.debits
    }
}

fn gate_on(ledger: Kept, noise: i64, log: &Log) -> Gate {
    let noise = Box::new(FakeNoise { log: Arc::clone(log), value: noise });
    Gate::new("run".into(), "site".into(), Box::new(mechanism()), noise, Box::new(ledger))
}

#[test]
fn after_a_restart_a_recorded_round_is_the_same_payload_without_charge_or_draw() {
    let (ledger, log) = (Kept::default(), Log::default());
    let mut gate = gate_on(ledger.clone(), 5, &log);
    let first = gate.release::<_, PrivacyError>(1, |_| Ok(good())).unwrap();
    drop(gate);
    log.lock().unwrap().clear();
    // Other noise and another point: what was recorded is what is released, for ever.
    let mut again = gate_on(ledger.reopened(), 99, &log);
    let other = Certified { point: vec![7.0; 3], residual: 0.0 };
    let mut ran = false;
    let repeated = again.release::<_, PrivacyError>(1, |_| {
        ran = true;
        Ok(other)
    });
    assert_eq!(repeated.unwrap().value(), first.value());
    assert!(ran, "the caller's state is made again");
    assert!(steps(&log).is_empty(), "nothing is drawn");
    assert_eq!((again.debits().len(), again.next_round()), (1, 2));
    again.release::<_, PrivacyError>(2, |_| Ok(good())).unwrap();
    assert_eq!(ledger.payloads.lock().unwrap().len(), 2);
}

#[test]
fn what_could_not_be_recorded_is_not_released() {
    let log = Log::default();
    let mut gate = gate_on(Kept { is_full: true, ..Kept::default() }, 5, &log);
    let error = gate.release::<_, PrivacyError>(1, |_| Ok(good())).unwrap_err();
    assert!(matches!(error, PrivacyError::LedgerFailed { .. }), "{error}");
}

/// One run summed by `Spending` agrees with its schedule's own report, and two runs cost what twice the rho costs.
#[test]
fn spending_over_runs_is_the_exact_composition() {
    let schedule = schedule();
    let delta = Delta::new(schedule.report().delta).unwrap();
    let mut spent = Spending::default();
    assert_eq!(spent.epsilon(delta).value(), 0.0);
    let one_run = |spent: &mut Spending| {
        for round in 1..=schedule.rounds() {
            let (event, exponent) = (schedule.event(round).unwrap(), schedule.grid_exponent(round).unwrap());
            spent.add(&event, schedule.n_features(), exponent).unwrap();
        }
    };
    one_run(&mut spent);
    let reported = schedule.report().epsilon_exact;
    let once = spent.epsilon(delta).value();
    assert!((once / reported - 1.0).abs() < 1e-3, "{once} {reported}");
    one_run(&mut spent);
    let mu = (4.0 * schedule.rho_total()).sqrt();
    let exact = gdp_epsilon(GdpMu::new(mu).unwrap(), delta).value();
    let twice = spent.epsilon(delta).value();
    assert!(twice >= exact && twice < 1.001 * exact, "{twice} {exact}");
    // A grid too coarse for the exact conversion falls back to zCDP, which holds for it as it is.
    let mut coarse = Spending::default();
    coarse.add(&schedule.event(1).unwrap(), 3, 100).unwrap();
    let rho = schedule.event(1).unwrap().rho().unwrap();
    assert_eq!(coarse.epsilon(delta), zcdp_epsilon(rho, delta));
    assert!(coarse.add(&Event::NonPrivate, 3, 0).is_err());
}

#[test]
fn what_fails_the_seal_does_not_leave() {
    let point = |bad: f64| Certified { point: vec![0.0, bad, 0.0], residual: 0.0 };
    let residual = |residual: f64| Certified { residual, ..good() };
    let cases: Vec<(Certified, PrivacyError)> = vec![
        (point(f64::NAN), PrivacyError::NotFinite),
        (point(f64::INFINITY), PrivacyError::NotFinite),
        (point(1e300), PrivacyError::BeyondGrid { exponent: schedule().grid_exponent(1).unwrap() }),
        (residual(f64::NAN), PrivacyError::CertificateMissing),
        (residual(-1.0), PrivacyError::CertificateMissing),
        (residual(f64::INFINITY), PrivacyError::CertificateMissing),
        (residual(2.0 * TOLERANCE), PrivacyError::ResidualTooLarge { tolerance: TOLERANCE }),
        (
            Certified { point: vec![0.0; 2], residual: 0.0 },
            PrivacyError::WrongLength { expected: 3, found: 2 },
        ),
    ];
    for (certified, expected) in cases {
        let (mut gate, log) = gate_with(MemoryLedger::new(), 0);
        assert_eq!(release(&mut gate, &log, 1, certified).unwrap_err(), expected);
        assert_eq!(gate.debits().len(), 1, "the debit stays");
    }
    // The value fits, the value with its noise does not.
    let largest = (1i64 << 53) - 1;
    let (mut gate, log) = gate_with(MemoryLedger::new(), largest);
    assert!(matches!(release(&mut gate, &log, 1, point(1.0)).unwrap_err(), PrivacyError::BeyondGrid { .. }));
    let (mut gate, log) = gate_with(MemoryLedger::new(), i64::MAX);
    assert!(matches!(release(&mut gate, &log, 1, point(1.0)).unwrap_err(), PrivacyError::BeyondGrid { .. }));
    let (mut gate, log) = gate_with(MemoryLedger::new(), largest);
    assert!(release(&mut gate, &log, 1, Certified { point: vec![0.0; 3], residual: TOLERANCE }).is_ok());
}

#[test]
fn noise_of_another_round_or_kind_is_refused() {
    let mechanism = mechanism();
    let foreign = PrivacyError::ForeignNoise { round: 1 };
    let mut noise = FakeNoise { log: Log::default(), value: 0 };
    let other_round = mechanism.draw(2, &mut noise).unwrap();
    assert_eq!(mechanism.seal(1, good().into(), other_round).unwrap_err(), foreign);
    let other_kind = Drawn::visible(1, vec![0.0; 3]);
    assert_eq!(other_kind.visible_noise(), Some(&[0.0; 3][..]));
    assert_eq!(mechanism.seal(1, good().into(), other_kind).unwrap_err(), foreign);
}

#[test]
fn a_mechanism_does_not_accept_less_than_its_sensitivity_assumes() {
    let schedule = schedule();
    for (modulus, tolerance, name) in [(0.5, 2.0 * TOLERANCE, "tolerance"), (0.4, TOLERANCE, "modulus")] {
        let error =
            GridGaussian::new(schedule.clone(), RequiredCertificate { modulus, tolerance }).unwrap_err();
        assert!(matches!(error, PrivacyError::CertificateMismatch { name: n, .. } if n == name), "{error}");
    }
    assert!(GridGaussian::new(schedule, RequiredCertificate { modulus: f64::NAN, tolerance: 0.0 }).is_err());
}

#[test]
fn what_peers_send_decodes_to_another_type_and_is_checked() {
    let (mut gate, log) = gate_with(MemoryLedger::new(), 2);
    let released = release(&mut gate, &log, 1, good()).unwrap();
    assert_eq!(PublicVector::received(released.value()), Ok(PublicVector::from(&released)));
    let grid = |exponent, value| PublicVector::received(&Payload::Grid { exponent, values: vec![value] });
    assert!(grid(-20, (1 << 53) - 1).is_ok());
    assert!(grid(-20, 1 << 53).is_err() && grid(-20, i64::MIN).is_err() && grid(971, 1).is_err());
    let plain = |value| PublicVector::received(&Payload::Plain(vec![value]));
    assert!(plain(1.5).is_ok() && plain(f64::INFINITY).is_err() && plain(f64::NAN).is_err());
}

#[test]
fn debug_hides_what_was_computed() {
    let (mut gate, log) = gate_with(MemoryLedger::new(), 0);
    let released = release(&mut gate, &log, 1, good()).unwrap();
    assert_eq!(format!("{released:?}"), r#"Release(site "site", round 1, hidden)"#);
    assert_eq!(format!("{:?}", good()), "Certified(hidden)");
    assert_eq!(format!("{gate:?}"), r#"Gate(run "run", site "site", next round 2)"#);
}

#[test]
fn public_vectors_are_linear() {
    let (mut gate, log) = gate_with(MemoryLedger::new(), 0);
    let released = release(&mut gate, &log, 1, good()).unwrap();
    let mut sum = PublicVector::zeros(FEATURES);
    sum.add_scaled(2.0, &PublicVector::from(&released));
    sum.scale(0.5);
    assert_eq!(sum, PublicVector::from(&released));
    assert_eq!((sum.len(), sum.is_empty(), released.value().len()), (3, false, 3));
    assert_eq!(serde_json::to_string(&PublicVector::zeros(2)).unwrap(), "[0.0,0.0]");
}
