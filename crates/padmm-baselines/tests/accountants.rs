//! One contract for every accountant.

use padmm_baselines::accounting::*;
use padmm_privacy::*;
use proptest::prelude::*;

/// Every accountant with events that it accepts, one for each number.
type Case = (Box<dyn Accountant>, fn(f64) -> Event);

fn all() -> Vec<Case> {
    vec![
        (Box::new(ZcdpAccountant::new(ZcdpConversion::Paper)), gaussian),
        (Box::new(ZcdpAccountant::new(ZcdpConversion::OptimalOrder)), gaussian),
        (Box::new(ZcdpAccountant::new(ZcdpConversion::OptimalOrder)), objective),
        (Box::new(GdpAccountant::new()), gaussian),
        (Box::new(RdpAccountant::new()), gaussian),
        (Box::new(RdpAccountant::new()), pure),
        (Box::new(RdpAccountant::new()), objective),
        (Box::new(BasicAccountant::new()), pure),
        (Box::new(PureAccountant::new()), pure),
    ]
}

fn gaussian(noise_multiplier: f64) -> Event {
    Event::Gaussian { sensitivity: 1.0, noise_std: noise_multiplier }
}

fn pure(noise_multiplier: f64) -> Event {
    Event::PureDp { epsilon: 1.0 / noise_multiplier }
}

fn objective(noise_multiplier: f64) -> Event {
    Event::GaussianObjective { shift: 1.0 / noise_multiplier, jacobian: 0.01 }
}

#[test]
fn nothing_costs_nothing() {
    for (accountant, _) in all() {
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
        Event::GaussianObjective { shift: f64::NAN, jacobian: 0.1 },
        Event::GaussianObjective { shift: -1.0, jacobian: 0.1 },
        Event::GaussianObjective { shift: 0.1, jacobian: f64::NAN },
        Event::GaussianObjective { shift: 0.1, jacobian: -0.1 },
        Event::GaussianObjective { shift: 1e200, jacobian: 0.1 },
    ];
    for (mut accountant, event) in all() {
        accountant.compose(&event(3.0)).unwrap();
        let delta = Delta::new(1e-5).unwrap();
        let (before, epsilon) = (accountant.rho(), accountant.epsilon(delta));
        for event in &refused {
            assert!(accountant.compose(event).is_err(), "{} took {event:?}", accountant.name());
            assert_eq!((accountant.rho(), accountant.epsilon(delta)), (before, epsilon));
        }
    }
}

#[test]
fn accountants_know_their_limits() {
    let (normal, single) = (gaussian(2.0), Event::PureDp { epsilon: 0.5 });
    let mut zcdp = ZcdpAccountant::new(ZcdpConversion::Paper);
    zcdp.compose(&single).unwrap();
    assert!(zcdp.rho().value() >= 0.125 && zcdp.rho().value() < 0.125 + 1e-12);
    for event in [single, objective(2.0)] {
        let error = GdpAccountant::new().compose(&event).unwrap_err();
        assert!(matches!(error, PrivacyError::NotGaussian { .. }));
    }
    for event in [normal, objective(2.0)] {
        let basic = BasicAccountant::new().compose(&event).unwrap_err();
        let optimal = PureAccountant::new().compose(&event).unwrap_err();
        for (error, name) in
            [(basic, "the basic accountant"), (optimal, "the optimal composition accountant")]
        {
            assert!(error.to_string().starts_with(name), "{error}");
        }
    }
    // The Renyi accountant takes a mixture, and agrees with zCDP where all noise is Gaussian.
    let mut renyi = RdpAccountant::new();
    for event in [normal, single, objective(2.0)] {
        renyi.compose(&event).unwrap();
    }
    let delta = Delta::new(1e-5).unwrap();
    assert!(renyi.epsilon(delta) <= paper_epsilon(renyi.rho(), delta));
    let mut renyi = RdpAccountant::new();
    renyi.compose(&normal).unwrap();
    let (one, other) = (renyi.epsilon(delta).value(), zcdp_epsilon(renyi.rho(), delta).value());
    assert!((one / other - 1.0).abs() < 1e-12);
}

#[test]
fn the_charge_of_gaussian_objective_perturbation() {
    let rho = charge(&Event::GaussianObjective { shift: 0.5, jacobian: 0.01 }).unwrap().value();
    let expected = 0.01 + 0.5 * (2.0 / std::f64::consts::PI).sqrt() + 0.125;
    assert!(rho >= expected && rho < expected * (1.0 + 1e-14), "{rho}");
}

#[test]
fn events_survive_serialisation() {
    for event in [gaussian(2.5), pure(4.0), objective(2.0), Event::NonPrivate] {
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
        for ((mut forward, event), (mut backward, _)) in all().into_iter().zip(all()) {
            let mut last = Epsilon::ZERO;
            for &m in &multipliers {
                forward.compose(&event(m)).unwrap();
                let now = forward.epsilon(delta);
                // A charge below rounding may leave the search a few units in the last place lower.
                prop_assert!(now.value() >= last.value() * (1.0 - 1e-12) - 1e-13, "{}", forward.name());
                last = now;
            }
            for &m in multipliers.iter().rev() {
                backward.compose(&event(m)).unwrap();
            }
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.max(b) + 1e-12;
            prop_assert!(close(forward.rho().value(), backward.rho().value()));
            prop_assert!(close(forward.epsilon(delta).value(), backward.epsilon(delta).value()));
            prop_assert!(forward.epsilon(smaller) >= forward.epsilon(delta));
        }
    }
}
