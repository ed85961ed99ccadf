//! One contract for every accountant.

use padmm_privacy::*;
use proptest::prelude::*;

fn all() -> Vec<Box<dyn Accountant>> {
    vec![
        Box::new(ZcdpAccountant::new(ZcdpConversion::Paper)),
        Box::new(ZcdpAccountant::new(ZcdpConversion::OptimalOrder)),
        Box::new(GdpAccountant::new()),
    ]
}

fn gaussian(noise_multiplier: f64) -> Event {
    Event::Gaussian { sensitivity: 1.0, noise_std: noise_multiplier }
}

#[test]
fn nothing_costs_nothing() {
    for accountant in all() {
        assert_eq!(accountant.rho(), ZcdpRho::ZERO);
        assert_eq!(accountant.epsilon(Delta::new(1e-9).unwrap()), Epsilon::ZERO, "{}", accountant.name());
    }
}

#[test]
fn refused_events_change_nothing() {
    let refused = [
        Event::NonPrivate,
        Event::Gaussian { sensitivity: f64::NAN, noise_std: 1.0 },
        Event::Gaussian { sensitivity: 1.0, noise_std: f64::NAN },
        Event::Gaussian { sensitivity: 1.0, noise_std: 0.0 },
        Event::Gaussian { sensitivity: -1.0, noise_std: 1.0 },
        Event::Gaussian { sensitivity: f64::INFINITY, noise_std: 1.0 },
        Event::Gaussian { sensitivity: 1e200, noise_std: 1e-200 },
        Event::PureDp { epsilon: f64::NAN },
        Event::PureDp { epsilon: -0.1 },
    ];
    for mut accountant in all() {
        accountant.compose(&gaussian(3.0)).unwrap();
        let before = accountant.rho();
        for event in &refused {
            assert!(accountant.compose(event).is_err(), "{} took {event:?}", accountant.name());
            assert_eq!(accountant.rho(), before);
        }
    }
}

#[test]
fn pure_events_are_for_zcdp_only() {
    let pure = Event::PureDp { epsilon: 0.5 };
    let mut zcdp = ZcdpAccountant::new(ZcdpConversion::Paper);
    zcdp.compose(&pure).unwrap();
    assert!(zcdp.rho().value() >= 0.125 && zcdp.rho().value() < 0.125 + 1e-12);
    let error = GdpAccountant::new().compose(&pure).unwrap_err();
    assert!(matches!(error, PrivacyError::NotGaussian { .. }));
}

#[test]
fn events_survive_serialisation() {
    for event in [gaussian(2.5), Event::PureDp { epsilon: 0.25 }, Event::NonPrivate] {
        let text = serde_json::to_string(&event).unwrap();
        assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event, "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn monotone_and_order_free(
        multipliers in prop::collection::vec(0.3f64..200.0, 1..20),
        log_delta in -25.0f64..-0.7,
    ) {
        let delta = Delta::new(log_delta.exp()).unwrap();
        let smaller = Delta::new(0.5 * delta.value()).unwrap();
        for (mut forward, mut backward) in all().into_iter().zip(all()) {
            let mut last = Epsilon::ZERO;
            for &m in &multipliers {
                forward.compose(&gaussian(m)).unwrap();
                let now = forward.epsilon(delta);
                // A charge below rounding may leave the search a unit in the last place lower.
                prop_assert!(now.value() >= last.value() * (1.0 - 1e-12), "{}", forward.name());
                last = now;
            }
            for &m in multipliers.iter().rev() {
                backward.compose(&gaussian(m)).unwrap();
            }
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.max(b) + 1e-12;
            prop_assert!(close(forward.rho().value(), backward.rho().value()));
            prop_assert!(close(forward.epsilon(delta).value(), backward.epsilon(delta).value()));
            prop_assert!(forward.epsilon(smaller) >= forward.epsilon(delta));
        }
    }
}
