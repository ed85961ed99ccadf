//! Objective perturbation: the privacy loss of small problems against what is charged, and the law of the noise.
//!
//! Statistical tests name their sample size and are set to raise a false alarm less than once in a million runs each.

use padmm_baselines::accounting::*;
use padmm_baselines::mechanism::*;
use padmm_privacy::*;

/// Two-sided 1e-6 quantile of the standard normal: P(|Z| > 4.892) = 1e-6.
const NORMAL_ALARM: f64 = 4.892;
/// For means of skewed squares: P(|Z| > 5.5) = 4e-8, and a skewness of 0.071 makes the tail at most seven times heavier.
const SKEWED_ALARM: f64 = 5.5;

type Pair = [f64; 2];

/// Uniform numbers in [-1, 1) from a linear congruential generator: the inputs need variety, not quality.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    /// A point of the unit disc.
    fn record(&mut self) -> Pair {
        let pair = [self.next(), self.next()];
        let norm = pair[0].hypot(pair[1]).max(1.0);
        pair.map(|value| value / norm)
    }
}

/// Mean logistic loss with m |x|^2/2 and a data-free linear term, in the plane: slope 1, curvature 1/4, rows of norm 1.
struct Problem {
    records: Vec<Pair>,
    modulus: f64,
    linear: Pair,
}

impl Problem {
    /// The noise under which x is the minimiser, and the determinant of the Hessian at x.
    fn noise_and_volume(&self, x: Pair) -> (Pair, f64) {
        let n = self.records.len() as f64;
        let mut gradient = [self.linear[0] + self.modulus * x[0], self.linear[1] + self.modulus * x[1]];
        let mut hessian = [self.modulus, 0.0, self.modulus];
        for u in &self.records {
            let sigmoid = 1.0 / (1.0 + (u[0] * x[0] + u[1] * x[1]).exp());
            let curvature = sigmoid * (1.0 - sigmoid) / n;
            for j in 0..2 {
                gradient[j] -= sigmoid * u[j] / n;
            }
            hessian[0] += curvature * u[0] * u[0];
            hessian[1] += curvature * u[0] * u[1];
            hessian[2] += curvature * u[1] * u[1];
        }
        (gradient.map(|value| -value), hessian[0] * hessian[2] - hessian[1] * hessian[1])
    }

    /// `ln p_D(x) - ln p_D'(x)`, D' having another first record, for noise of density proportional to `exp(-rate |b|)`.
    fn privacy_loss(&self, other: Pair, x: Pair, rate: f64) -> f64 {
        let mut replaced = Self { records: self.records.clone(), ..*self };
        replaced.records[0] = other;
        let ((b, volume), (b_other, volume_other)) = (self.noise_and_volume(x), replaced.noise_and_volume(x));
        rate * (b_other[0].hypot(b_other[1]) - b[0].hypot(b[1])) + (volume / volume_other).ln()
    }

    /// The charge of one release with half of the budget for the noise, and the rate of that noise.
    fn charge(&self) -> (f64, f64, f64) {
        let inputs =
            ObjectiveInputs { gradient_bound: 1.0, curvature_bound: 0.25, n_records: self.records.len() };
        let jacobian = inputs.jacobian(self.modulus).unwrap();
        let schedule = PureSchedule::calibrate(&PureRequest {
            budget: Budget::new(2.0 * jacobian, 1e-5).unwrap(),
            rule: CompositionRule::Basic,
            target: PureTarget::Objective(inputs),
            steps: vec![Some(PureStep { share: 1.0, modulus: self.modulus })],
            n_features: 2,
        })
        .unwrap();
        (schedule.epsilon(1).unwrap(), schedule.noise_rate(1).unwrap(), jacobian)
    }
}

#[test]
fn the_privacy_loss_is_never_above_the_charge() {
    let mut numbers = Numbers(1);
    let mut worst: f64 = 0.0;
    for case in 0..300 {
        let n = 1 + case % 5;
        let modulus = 10f64.powf(2.0 * numbers.next() - 1.0);
        let records = (0..n).map(|_| numbers.record()).collect();
        let problem = Problem { records, modulus, linear: [numbers.next(), numbers.next()] };
        let (epsilon, rate, _) = problem.charge();
        for _ in 0..400 {
            let other = numbers.record();
            let scale = 10f64.powf(2.0 * numbers.next());
            let x = [scale * numbers.next(), scale * numbers.next()];
            let loss = problem.privacy_loss(other, x, rate).abs();
            assert!(loss <= epsilon * (1.0 + 1e-12) + 1e-12, "case {case}: {loss} > {epsilon}");
            worst = worst.max(loss / epsilon);
        }
    }
    assert!(worst > 0.5, "the outputs were worth looking at: {worst}");
}

#[test]
fn both_parts_of_the_charge_are_nearly_reached() {
    // The Jacobian part: a record of full curvature at x = 0 against none; the rate plays no role in the limit.
    let problem = Problem { records: vec![[1.0, 0.0]], modulus: 0.05, linear: [0.5, 0.0] };
    let (_, _, jacobian) = problem.charge();
    let volume = problem.privacy_loss([0.0, 0.0], [0.0, 0.0], 0.0);
    assert!(volume <= jacobian && volume > 0.999_999 * jacobian, "{volume} {jacobian}");
    // The noise part: two nearly opposite records, both far on the steep side, and noise along their difference.
    let (angle, reach): (f64, f64) = (1e-3, 1e5);
    let record = [angle.cos(), angle.sin()];
    let problem = Problem { records: vec![record], modulus: 1e-3, linear: [1e6, 1e-3 * reach] };
    let (epsilon, rate, jacobian) = problem.charge();
    let other = [-angle.cos(), angle.sin()];
    let loss = problem.privacy_loss(other, [0.0, -reach], rate).abs();
    assert!(loss <= epsilon && loss > 0.999 * (epsilon - jacobian), "{loss} {epsilon} {jacobian}");
}

const FEATURES: usize = 5;

fn draw(schedule: &dyn Schedule, n: usize) -> Vec<Vec<f64>> {
    let mechanism = schedule.mechanism(RequiredCertificate { modulus: 1.0, tolerance: 0.0 }).unwrap();
    let one = |_| mechanism.draw(1, &mut SecureNoise).unwrap().visible_noise().unwrap().to_vec();
    (0..n).map(one).collect()
}

fn inputs() -> ObjectiveInputs {
    ObjectiveInputs { gradient_bound: 1.0, curvature_bound: 0.25, n_records: 100 }
}

#[test]
fn gamma_noise_has_its_moments() {
    const SAMPLES: usize = 4000;
    let schedule = PureSchedule::calibrate(&PureRequest {
        budget: Budget::new(1.0, 1e-5).unwrap(),
        rule: CompositionRule::Basic,
        target: PureTarget::Objective(inputs()),
        steps: vec![Some(PureStep { share: 1.0, modulus: 1.0 })],
        n_features: FEATURES,
    })
    .unwrap();
    let rate = schedule.noise_rate(1).unwrap();
    let (p, n) = (FEATURES as f64, SAMPLES as f64);
    let sample = draw(&schedule, SAMPLES);
    let norms: Vec<f64> =
        sample.iter().map(|b| rate * b.iter().map(|value| value * value).sum::<f64>().sqrt()).collect();
    // The norm is Gamma(p): mean p, variance p, fourth moment p (p+1) (p+2) (p+3).
    let mean = norms.iter().sum::<f64>() / n;
    assert!((mean - p).abs() < NORMAL_ALARM * (p / n).sqrt(), "{mean}");
    let second = norms.iter().map(|r| r * r).sum::<f64>() / n;
    let variance = p * (p + 1.0) * ((p + 2.0) * (p + 3.0) - p * (p + 1.0));
    assert!((second - p * (p + 1.0)).abs() < SKEWED_ALARM * (variance / n).sqrt(), "{second}");
    for j in 0..FEATURES {
        // A coordinate has variance p + 1 and, as E v_1^4 = 3/(p(p+2)) on the sphere, fourth moment 3 (p+1) (p+3).
        let mean = sample.iter().map(|b| rate * b[j]).sum::<f64>() / n;
        assert!(mean.abs() < NORMAL_ALARM * ((p + 1.0) / n).sqrt(), "{j}: {mean}");
        let second = sample.iter().map(|b| (rate * b[j]).powi(2)).sum::<f64>() / n;
        let variance = 3.0 * (p + 1.0) * (p + 3.0) - (p + 1.0) * (p + 1.0);
        assert!((second - p - 1.0).abs() < SKEWED_ALARM * (variance / n).sqrt(), "{j}: {second}");
    }
    // Direction and norm are independent: the first coordinate's share of the square has mean 1/p, whatever the norm.
    let shares = sample.iter().zip(&norms).map(|(b, r)| (rate * b[0] / r).powi(2));
    let share = shares.sum::<f64>() / n;
    let variance = 3.0 / (p * (p + 2.0)) - 1.0 / (p * p);
    assert!((share - 1.0 / p).abs() < SKEWED_ALARM * (variance / n).sqrt(), "{share}");
}

#[test]
fn gaussian_noise_on_the_objective_has_its_variance() {
    const SAMPLES: usize = 4000;
    let schedule = GaussianObjectiveSchedule::calibrate(&GaussianObjectiveRequest {
        budget: Budget::new(1.0, 1e-5).unwrap(),
        inputs: inputs(),
        modulus: 1.0,
        rounds: 3,
        n_features: FEATURES,
    })
    .unwrap();
    let n = (SAMPLES * FEATURES) as f64;
    let std = schedule.noise_std();
    let sample: Vec<f64> = draw(&schedule, SAMPLES).into_iter().flatten().map(|b| b / std).collect();
    let (mean, second) = (sample.iter().sum::<f64>() / n, sample.iter().map(|z| z * z).sum::<f64>() / n);
    assert!(mean.abs() < NORMAL_ALARM / n.sqrt(), "{mean}");
    assert!((second - 1.0).abs() < NORMAL_ALARM * (2.0 / n).sqrt(), "{second}");
}
