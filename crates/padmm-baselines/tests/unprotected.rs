//! Releases without noise call themselves that, and have no charge.

use padmm_baselines::mechanism::Unprotected;
use padmm_privacy::*;

fn point() -> Certified {
    Certified { point: vec![1.0, -2.0, 0.5], residual: 0.0 }
}

fn release() -> (Gate, Result<Release<Payload>, PrivacyError>) {
    let plain = Box::new(Unprotected::new(3).unwrap());
    let mut gate =
        Gate::new("r".into(), "s".into(), plain, Box::new(SecureNoise), Box::new(MemoryLedger::new()));
    let released = gate.release(1, |_: &Drawn| Ok::<_, PrivacyError>(point()));
    (gate, released)
}

#[test]
fn unprotected_releases_are_recorded_as_such() {
    let (gate, released) = release();
    assert_eq!(released.unwrap().value(), &Payload::Plain(point().point));
    assert_eq!((gate.report(), gate.debits()[0].event), (None, Event::NonPrivate));
    assert!(matches!(gate.debits()[0].event.rho(), Err(PrivacyError::NotGaussian { .. })));
}

#[test]
fn nothing_is_sealed_with_what_was_drawn_for_another_round() {
    let plain = Unprotected::new(3).unwrap();
    let drawn = plain.draw(2, &mut SecureNoise).unwrap();
    assert_eq!(plain.seal(1, point().into(), drawn).unwrap_err(), PrivacyError::ForeignNoise { round: 1 });
}
