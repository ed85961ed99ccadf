//! The privacy loss of composed randomised responses, which no composition of pure mechanisms exceeds.
//!
//! A mechanism that is epsilon-private is a post-processing of randomised response: its loss is `+epsilon` with probability
//! `e^epsilon/(1 + e^epsilon)` and `-epsilon` otherwise. Composing K of them, adaptively or not, is dominated by the sum L of
//! K independent such losses, and
//!
//! ```text
//! delta(epsilon) = sum over L > epsilon of P(L) (1 - e^(epsilon - L))
//! ```
//!
//! is the optimal composition theorem (Kairouz, Oh, Viswanath 2015; for unequal steps Murtagh, Vadhan 2016).

use padmm_privacy::Delta;
use padmm_privacy::outward::{add_up, div_up, exp_down, ln_up, mul_down, mul_up, sub_up};

/// With more unequal steps than this the distribution is not formed; other bounds take over.
pub(crate) const MOST_STEPS: usize = 2048;
/// Absolute room for what underflows in sums of probabilities.
const UNDERFLOW: f64 = 1e-300;
/// After so many atoms the factor `e^-L` is computed anew in place of being carried on.
const REFRESH: usize = 16;

/// Probabilities of the losses `(total - 2 m) * step`, m = 0, 1, ..., at least as far as the loss is positive.
#[derive(Debug, Clone)]
pub(crate) struct LossDistribution {
    step: f64,
    total: usize,
    mass: Vec<f64>,
    /// Bound of the relative error of every mass.
    relative_error: f64,
}

impl LossDistribution {
    /// The loss of `count` equal steps: a binomial distribution, without any rounding of epsilon.
    ///
    /// The masses come from their ratios, `P(m)/P(m-1) = (count - m + 1)/m * e^-epsilon`, starting from 1 at the mode, and are
    /// divided by their sum. Only positive numbers are added and multiplied; a step loses at most five roundings.
    pub(crate) fn equal(epsilon: f64, count: usize) -> Self {
        let odds = libm::exp(-epsilon);
        let ratio = |m: usize| (count - m + 1) as f64 / m as f64 * odds;
        let mode = ((count + 1) as f64 * (odds / (1.0 + odds))) as usize;
        let mut mass = vec![0.0; count + 1];
        mass[mode] = 1.0;
        for m in mode + 1..=count {
            mass[m] = mass[m - 1] * ratio(m);
        }
        for m in (1..=mode).rev() {
            mass[m - 1] = mass[m] / ratio(m);
        }
        let sum: f64 = mass.iter().sum();
        mass.iter_mut().for_each(|p| *p /= sum);
        Self { step: epsilon, total: count, mass, relative_error: 16.0 * count as f64 * f64::EPSILON }
    }

    /// The epsilon at `delta`, rounded up: the first point, from above, below which delta would be exceeded.
    ///
    /// Between two neighbouring losses `delta(epsilon) = P - e^epsilon Q` with `P = P(L > epsilon)` and `Q = sum of P(L) e^-L`
    /// over the same losses, so the root there is `ln((P - delta)/Q)`. P is rounded up and Q down, each by the bound of the
    /// masses' error and that of a compensated sum. Never below the true root, and never negative.
    pub(crate) fn epsilon_up(&self, delta: Delta) -> f64 {
        let delta = delta.value();
        // A compensated sum of n positive terms is off by 2 units and n^2 of their squares; two products come on top.
        let error = self.relative_error + 16.0 * f64::EPSILON;
        let (mut sum, mut weighted, mut factor) = (Sum::default(), Sum::default(), 0.0);
        let growth = exp_down(2.0 * self.step);
        for (m, &mass) in self.mass.iter().enumerate() {
            let loss = self.loss_up(m);
            if loss <= 0.0 {
                break;
            }
            // Carried on, the factor falls behind the true one by three units in the last place an atom: the safe side.
            factor =
                if m % REFRESH == 0 || factor < 1e-290 { exp_down(-loss) } else { mul_down(factor, growth) };
            sum.add(mass);
            weighted.add(mass * factor);
            let probability = add_up(mul_up(sum.value, 1.0 + error), UNDERFLOW);
            if probability <= delta {
                continue;
            }
            let quotient = mul_down(weighted.value, 1.0 - error) - UNDERFLOW;
            let root = if quotient > 0.0 {
                ln_up(div_up(sub_up(probability, delta), quotient))
            } else {
                f64::INFINITY
            };
            if root > self.loss_up(m + 1).max(0.0) {
                return root.min(loss);
            }
        }
        0.0
    }

    /// The m-th largest loss, rounded up.
    fn loss_up(&self, m: usize) -> f64 {
        let plus = self.total as f64 - 2.0 * m as f64;
        mul_up(plus, self.step)
    }
}

/// Kahan's compensated sum: long sums must not round more than short ones, or a further event could lower the result.
#[derive(Default)]
struct Sum {
    value: f64,
    lost: f64,
}

impl Sum {
    fn add(&mut self, term: f64) {
        let term = term - self.lost;
        let next = self.value + term;
        self.lost = (next - self.value) - term;
        self.value = next;
    }
}

/// The loss of unequal steps, each rounded up to a multiple of a common step, convolved one by one.
///
/// Rounding an epsilon up describes a weaker mechanism, so the result is never below the truth. Steps are powers of two that
/// grow with the largest epsilon and with the number of steps, so that further events only ever coarsen the lattice and
/// never lower the result.
#[derive(Debug, Clone)]
pub(crate) struct LossLattice {
    distribution: LossDistribution,
    next: Vec<f64>,
    /// Masses beyond this index belong to losses that are negative at the end, and are not needed.
    last: usize,
}

impl LossLattice {
    /// An empty lattice that has room for these steps; `None` if there are too many of them or if all are zero.
    pub(crate) fn for_steps(epsilons: &[f64]) -> Option<Self> {
        let largest = epsilons.iter().copied().fold(0.0, f64::max);
        if epsilons.len() > MOST_STEPS || !(1e-290..=1e290).contains(&largest) {
            return None;
        }
        // About 2^21 divided by the square of the number of steps: a convolution stays near a million operations.
        let doublings = epsilons.len().next_power_of_two().trailing_zeros() as i32;
        let bits = (21 - 2 * doublings).clamp(4, 12);
        let step = libm::scalbn(1.0, libm::ilogb(largest) - bits);
        let total: usize = epsilons.iter().map(|&epsilon| multiple_up(epsilon, step)).sum();
        let distribution = LossDistribution { step, total: 0, mass: vec![1.0], relative_error: 0.0 };
        Some(Self { distribution, next: Vec::new(), last: total / 2 })
    }

    /// Adds a step: `P(m) <- P(m) p + P(m - k) (1 - p)`, k the step's epsilon in units of the lattice.
    pub(crate) fn push(&mut self, epsilon: f64) {
        let Self { distribution, next, last } = self;
        let k = multiple_up(epsilon, distribution.step);
        if k == 0 {
            return;
        }
        let odds = libm::exp(-(k as f64 * distribution.step));
        let (keep, flip) = (1.0 / (1.0 + odds), odds / (1.0 + odds));
        let old = &distribution.mass;
        let length = (old.len() + k).min(*last + 1);
        next.clear();
        next.extend(old.iter().take(length).map(|p| keep * p));
        next.resize(length, 0.0);
        for (sum, p) in next.iter_mut().skip(k).zip(old) {
            *sum += flip * p;
        }
        std::mem::swap(&mut distribution.mass, next);
        distribution.total += k;
        // Two factors within four units in the last place, one product and one sum.
        distribution.relative_error += 16.0 * f64::EPSILON;
    }

    pub(crate) fn epsilon_up(&self, delta: Delta) -> f64 {
        self.distribution.epsilon_up(delta)
    }
}

/// The smallest k with `k * step >= epsilon`; the step is a power of two, so both operations are exact.
fn multiple_up(epsilon: f64, step: f64) -> usize {
    libm::ceil(epsilon / step) as usize
}
