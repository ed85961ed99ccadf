//! The production noise: its distribution, its divergence, and its distance from the rounded Gaussian.
//!
//! Statistical tests name their sample size and are set to raise a false alarm once in a million runs each.

use padmm_privacy::*;

/// Two-sided 1e-6 quantile of the standard normal: P(|Z| > 4.892) = 1e-6.
const NORMAL_ALARM: f64 = 4.892;

fn draw(scale: f64, n: usize) -> Vec<i64> {
    let mut out = vec![0; n];
    SecureNoise.fill(scale, &mut out).unwrap();
    out
}

/// The discrete Gaussian's probabilities on -reach..=reach, by direct summation.
fn exact_pmf(scale: f64, reach: i64) -> Vec<f64> {
    let weight = |x: i64| (-0.5 * (x as f64 / scale).powi(2)).exp();
    let far = (40.0 * scale) as i64 + 10;
    let total: f64 = (-far..=far).map(weight).sum();
    (-reach..=reach).map(|x| weight(x) / total).collect()
}

#[test]
fn frequencies_match_the_exact_probabilities() {
    const SAMPLES: usize = 60_000;
    for scale in [1.0, 2.5, 10.0] {
        let reach = (3.0 * scale) as i64;
        let pmf = exact_pmf(scale, reach);
        let mut counts = vec![0.0; pmf.len() + 1];
        for x in draw(scale, SAMPLES) {
            let cell = if x.abs() <= reach { (x + reach) as usize } else { pmf.len() };
            counts[cell] += 1.0;
        }
        let tail = 1.0 - pmf.iter().sum::<f64>();
        let expected = pmf.iter().chain([&tail]).map(|p| p * SAMPLES as f64);
        let chi2: f64 = counts.iter().zip(expected).map(|(c, e)| (c - e) * (c - e) / e).sum();
        // Laurent and Massart (2000): P(chi2_k > k + 2 sqrt(k t) + 2 t) <= e^-t; here e^-t = 1e-6. The rarest cell expects
        // dozens of samples, so that the statistic is close to its limit law.
        let (k, t) = (pmf.len() as f64, 1e6f64.ln());
        let alarm = k + 2.0 * (k * t).sqrt() + 2.0 * t;
        assert!(chi2 < alarm, "scale {scale}: chi2 = {chi2} with {k} degrees of freedom, alarm at {alarm}");
    }
}

#[test]
fn mean_and_variance_at_the_scales_that_are_used() {
    const SAMPLES: usize = 20_000;
    for scale in [7.0, 1.5 * (1u64 << 24) as f64, 1.999 * (1u64 << 40) as f64] {
        let sample = draw(scale, SAMPLES);
        let n = SAMPLES as f64;
        let mean = sample.iter().map(|&x| x as f64 / scale).sum::<f64>() / n;
        let second = sample.iter().map(|&x| (x as f64 / scale).powi(2)).sum::<f64>() / n;
        // Standardised, the mean has standard deviation 1/sqrt(n) and the second moment sqrt(2/n).
        assert!(mean.abs() < NORMAL_ALARM / n.sqrt(), "scale {scale}: mean {mean}");
        assert!((second - 1.0).abs() < NORMAL_ALARM * (2.0 / n).sqrt(), "scale {scale}: variance {second}");
    }
}

#[test]
fn coordinates_are_independent_and_draws_differ() {
    const SAMPLES: usize = 20_000;
    let scale = 1e6;
    let sample = draw(scale, SAMPLES + 1);
    let products = sample.windows(2).map(|w| (w[0] as f64 / scale) * (w[1] as f64 / scale));
    let correlation = products.sum::<f64>() / SAMPLES as f64;
    assert!(correlation.abs() < NORMAL_ALARM / (SAMPLES as f64).sqrt(), "{correlation}");
    assert_ne!(draw(1e12, 4), draw(1e12, 4));
}

#[test]
fn renyi_divergence_obeys_the_charge() {
    // Exact summation: for integer shifts the order-a divergence is at most a shift^2 / (2 scale^2), with equality where
    // a * shift is an integer. This is zCDP of the discrete Gaussian, with the constant that the ledger is charged.
    for scale in [1.0, 1.7, 2.5, 10.0] {
        for shift in [1i64, 2, 5] {
            let rho = Event::Gaussian { sensitivity: shift as f64, noise_std: scale }.rho().unwrap().value();
            for order in [1.001, 1.5, 2.0, 3.3, 8.0] {
                let reach = (45.0 * scale) as i64 + (order * shift as f64) as i64 + 60;
                // ln sum of p^a q^(1-a), formed from exponents so that tails neither underflow nor overflow.
                let exponent = |x: i64| {
                    let (near, moved) = (x as f64 / scale, (x - shift) as f64 / scale);
                    -0.5 * (order * moved * moved + (1.0 - order) * near * near)
                };
                let top = (-reach..=reach).map(exponent).fold(f64::MIN, f64::max);
                let sum: f64 = (-reach..=reach).map(|x| (exponent(x) - top).exp()).sum();
                let total: f64 = (-reach..=reach).map(|x| (-0.5 * (x as f64 / scale).powi(2)).exp()).sum();
                let divergence = (top + sum.ln() - total.ln()) / (order - 1.0);
                assert!(divergence <= order * rho * (1.0 + 1e-12) + 1e-11, "{scale} {shift} {order}");
                if (order * shift as f64).fract() == 0.0 {
                    assert!((divergence - order * rho).abs() < 1e-9, "equality at integer orders");
                }
            }
        }
    }
}

#[test]
fn total_variation_to_the_rounded_gaussian_is_below_the_slack() {
    // The slack that is charged is 1/(12 s^2) a coordinate for s >= 10; the true distance is near 0.0202/s^2.
    for scale in [10.0, 12.3, 25.0, 60.0] {
        let reach = (12.0 * scale) as i64;
        let pmf = exact_pmf(scale, reach);
        let q = |x: f64| 0.5 * libm::erfc(x / scale / std::f64::consts::SQRT_2);
        let rounded = (-reach..=reach).map(|x| {
            let x = x.abs() as f64;
            q(x - 0.5) - q(x + 0.5)
        });
        let distance = 0.5 * pmf.iter().zip(rounded).map(|(p, r)| (p - r).abs()).sum::<f64>();
        let allowed = 1.0 / (12.0 * scale * scale);
        assert!(distance <= allowed, "scale {scale}: {distance} > {allowed}");
        assert!(
            (distance * scale * scale - 0.0202).abs() < 0.001,
            "scale {scale}: {}",
            distance * scale * scale
        );
    }
}

#[test]
fn a_released_vector_has_the_noise_that_was_charged() {
    const FEATURES: usize = 10_000;
    let inputs = SensitivityInputs { gradient_bound: 1.0, n_records: 50, tolerance: 1e-6, modulus: 0.1 };
    let request = NoiseRequest {
        budget: Budget::new(2.0, 1e-6).unwrap(),
        conversion: Conversion::Exact,
        decay: Decay::new(2, 0.5).unwrap(),
        sensitivity: Sensitivity::per_record(&inputs).unwrap(),
        n_features: FEATURES,
        scales: None,
    };
    let schedule = NoiseSchedule::calibrate(&request).unwrap();
    let required = RequiredCertificate { modulus: 0.1, tolerance: 1e-6 };
    let mechanism = Box::new(GridGaussian::new(schedule.clone(), required).unwrap());
    let ledger = Box::new(MemoryLedger::new());
    let mut gate = Gate::new("r".into(), "s".into(), mechanism, Box::new(SecureNoise), ledger);
    assert!(gate.noise_is_secure());
    for round in 1..=2 {
        let point = Certified { point: vec![1.0; FEATURES], residual: 1e-7 };
        let released = gate.release::<_, PrivacyError>(round, |_| Ok(point)).unwrap();
        let std = schedule.noise_std(round).unwrap();
        let squares = released.value().to_vec().into_iter().map(|v| ((v - 1.0) / std).powi(2));
        let variance = squares.sum::<f64>() / FEATURES as f64;
        assert!(
            (variance - 1.0).abs() < NORMAL_ALARM * (2.0 / FEATURES as f64).sqrt(),
            "{round}: {variance}"
        );
    }
}

#[test]
fn scales_outside_the_range_are_refused() {
    for scale in [f64::NAN, 0.0, 0.5, -3.0, f64::INFINITY, 1e17] {
        let error = SecureNoise.fill(scale, &mut [0]).unwrap_err();
        assert!(matches!(error, PrivacyError::OutOfRange { name: "noise scale", .. }));
    }
    assert!(SecureNoise.description().contains("discrete Gaussian"));
}
