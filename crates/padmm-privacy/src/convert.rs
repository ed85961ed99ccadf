//! From one measure of privacy to another. Every function states which way it rounds; a reported epsilon is never
//! below the true one, and a permitted charge never above.

#![allow(clippy::float_cmp, reason = "what is meant is equality to the bit")]

use crate::budget::{Budget, Delta, Epsilon, GdpMu, ZcdpRho};
use crate::normal::{density_down, density_up, distribution_up, mills_ratio_down, mills_ratio_up};
use crate::outward::{add_up, div_down, div_up, ln_down, mul_down, mul_up, sqrt_up, sub_down, sub_up};

/// Conversions accept any finite epsilon, but search only up to this one. Searching less is the safe direction.
const LARGEST_SEARCHED: f64 = 1e6;

/// The paper's conversion (Bun, Steinke 2016, Proposition 1.3), rounded up:
///
/// ```text
/// epsilon = rho + 2 sqrt(rho ln(1/delta))
/// ```
pub fn paper_epsilon(rho: ZcdpRho, delta: Delta) -> Epsilon {
    let log_inverse = -ln_down(delta.value());
    let epsilon = add_up(rho.value(), 2.0 * sqrt_up(mul_up(rho.value(), log_inverse)));
    Epsilon::new(epsilon).expect("rho is at most 1e120, so epsilon is finite")
}

/// Inverse of [`paper_epsilon`], rounded down, so that `paper_epsilon(paper_rho(b), b.delta) <= b.epsilon`:
///
/// ```text
/// rho = (sqrt(epsilon + L) - sqrt(L))^2 = (epsilon / (sqrt(epsilon + L) + sqrt(L)))^2,   L = ln(1/delta)
/// ```
///
/// The second form has no cancellation.
pub fn paper_rho(budget: Budget) -> ZcdpRho {
    let epsilon = budget.epsilon.value().min(LARGEST_SEARCHED);
    let log_inverse = -ln_down(budget.delta.value());
    let root = div_down(epsilon, add_up(sqrt_up(add_up(epsilon, log_inverse)), sqrt_up(log_inverse)));
    lower_until(mul_down(root, root).max(0.0), ZcdpRho::new, |rho| {
        paper_epsilon(rho, budget.delta) <= budget.epsilon
    })
}

/// The Gaussian parameter of composed Gaussian mechanisms, rounded up: `mu = sqrt(2 rho)`.
///
/// Holds for a rho that is a sum of `sensitivity^2 / (2 noise_std^2)`, adaptively chosen or not (Dong, Roth, Su 2022),
/// and for nothing else: a zCDP guarantee of another mechanism does not imply GDP.
pub fn rho_to_mu(rho: ZcdpRho) -> GdpMu {
    GdpMu::new(sqrt_up(2.0 * rho.value())).expect("rho is at most 1e120, so mu is at most 2e60")
}

/// The exact trade-off of mu-GDP, rounded up:
///
/// ```text
/// delta(epsilon) = Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2)
/// ```
///
/// With `a = epsilon/mu - mu/2`, `b = epsilon/mu + mu/2` and `e^epsilon phi(b) = phi(a)` this is
/// `g(a, b) = phi(a) (M(a) - M(b))`, M the Mills ratio, which neither overflows nor underflows early. Guarantee: never
/// below the true value. For `dg/da = phi(a) (a M(b) - 1) < 0`, as `a < b < 1/M(b)`, and `dg/db = -phi(a) M'(b) > 0`, so a is
/// rounded down, b up, and then each factor up.
pub fn gdp_delta(mu: GdpMu, epsilon: Epsilon) -> f64 {
    let (mu, epsilon) = (mu.value(), epsilon.value());
    if mu == 0.0 {
        return 0.0;
    }
    let low = sub_down(div_down(epsilon, mu), 0.5 * mu);
    let high = add_up(div_up(epsilon, mu), 0.5 * mu);
    let delta = if low >= 0.0 {
        mul_up(density_up(low), sub_up(mills_ratio_up(low), mills_ratio_down(high)))
    } else {
        sub_up(distribution_up(-low), mul_down(density_down(low), mills_ratio_down(high)))
    };
    delta.min(1.0)
}

/// The exact epsilon of mu-GDP at `delta`, rounded up.
///
/// Guarantee: `gdp_delta` of the result, itself an upper bound, is at most `delta`; hence never below the true root.
pub fn gdp_epsilon(mu: GdpMu, delta: Delta) -> Epsilon {
    let holds = |epsilon: f64| Epsilon::new(epsilon).is_ok_and(|e| gdp_delta(mu, e) <= delta.value());
    if holds(0.0) {
        return Epsilon::ZERO;
    }
    let rho = 0.5 * mul_up(mu.value(), mu.value());
    let mut above = add_up(rho, 2.0 * sqrt_up(mul_up(rho, -ln_down(delta.value()))));
    while !holds(above) {
        above *= 1.0 + 1e-12;
    }
    Epsilon::new(bisect(above, 0.0, holds)).expect("the root lies below a finite bound")
}

/// The largest mu that a budget allows, rounded down: `gdp_epsilon(gdp_mu(b), b.delta) <= b.epsilon`.
pub fn gdp_mu(budget: Budget) -> GdpMu {
    let epsilon = Epsilon::new(budget.epsilon.value().min(LARGEST_SEARCHED)).expect("still in range");
    let holds = |mu: f64| GdpMu::new(mu).is_ok_and(|m| gdp_delta(m, epsilon) <= budget.delta.value());
    lower_until(largest(holds), GdpMu::new, |mu| gdp_epsilon(mu, budget.delta) <= budget.epsilon)
}

/// Epsilon of a mechanism whose Renyi divergence of order `a = 1 + order_minus_one` is at most D, `divergence`, rounded up (Canonne,
/// Kamath, Steinke 2020, Proposition 12). Valid for every order above 1; rho-zCDP has `D = a rho`:
///
/// ```text
/// epsilon(a) = D + (ln(1/delta) + a ln(1 - 1/a) - ln(a - 1)) / (a - 1)
/// ```
///
/// The absolute values of all terms are added up, and 16 units of their rounding error go on top.
pub fn renyi_epsilon_at(divergence: f64, log_inverse_delta: f64, order_minus_one: f64) -> f64 {
    let order = 1.0 + order_minus_one;
    let rest = if order_minus_one > 1.0 {
        [order * libm::log1p(-1.0 / order) / order_minus_one, -libm::log(order_minus_one) / order_minus_one]
    } else {
        // The same sum with the parts that explode near a = 1 cancelled on paper.
        [libm::log(order_minus_one), -order * libm::log1p(order_minus_one) / order_minus_one]
    };
    let addends = [divergence, log_inverse_delta / order_minus_one, rest[0], rest[1]];
    let sum: f64 = addends.iter().sum();
    let size: f64 = addends.iter().map(|term| term.abs()).sum();
    sum + 16.0 * f64::EPSILON * size
}

/// Epsilon of rho-zCDP at the optimal Renyi order, rounded up: never below the infimum over orders.
///
/// ```text
/// delta = min over a > 1 of exp((a-1)(a rho - epsilon)) / (a-1) * (1 - 1/a)^a
/// ```
///
/// Any order is valid, so the search for the best one needs no guarantee of its own. It is a golden-section search in
/// ln(a - 1): log delta is convex in a for fixed epsilon, hence epsilon is quasi-convex in a for fixed delta.
pub fn zcdp_epsilon(rho: ZcdpRho, delta: Delta) -> Epsilon {
    let rho = rho.value();
    if rho == 0.0 {
        return Epsilon::ZERO;
    }
    let log_inverse = -ln_down(delta.value());
    let at = |log_order: f64| {
        let order_minus_one = libm::exp(log_order);
        renyi_epsilon_at((1.0 + order_minus_one) * rho, log_inverse, order_minus_one)
    };
    let centre = 0.5 * libm::log(log_inverse.max(1e-3) / rho);
    let best = smallest_over_orders(centre - 12.0, centre + 12.0, at);
    // The paper's conversion is valid as well, and catches an order that overflowed.
    let paper = add_up(rho, 2.0 * sqrt_up(mul_up(rho, log_inverse)));
    Epsilon::new(best.min(paper).max(0.0)).expect("bounded by the paper's conversion")
}

/// The smallest value seen in a golden-section search over ln(a - 1) between `left` and `right`.
///
/// Used only where every order gives a valid bound, so that missing the best one costs sharpness and nothing else.
pub fn smallest_over_orders(mut left: f64, mut right: f64, at: impl Fn(f64) -> f64) -> f64 {
    let golden = 0.5 * (5f64.sqrt() - 1.0);
    let (mut x, mut y) = (right - golden * (right - left), left + golden * (right - left));
    let (mut at_x, mut at_y) = (at(x), at(y));
    let mut best = at_x.min(at_y);
    for _ in 0..70 {
        if at_x < at_y {
            (right, y, at_y) = (y, x, at_x);
            x = right - golden * (right - left);
            at_x = at(x);
        } else {
            (left, x, at_x) = (x, y, at_y);
            y = left + golden * (right - left);
            at_y = at(y);
        }
        best = best.min(at_x).min(at_y);
    }
    best
}

/// The largest rho that a budget allows at the optimal order, rounded down:
/// `zcdp_epsilon(zcdp_rho(b), b.delta) <= b.epsilon`, checked for the very value that is returned.
pub fn zcdp_rho(budget: Budget) -> ZcdpRho {
    let epsilon = Epsilon::new(budget.epsilon.value().min(LARGEST_SEARCHED)).expect("still in range");
    let holds = |rho: f64| ZcdpRho::new(rho).is_ok_and(|r| zcdp_epsilon(r, budget.delta) <= epsilon);
    ZcdpRho::new(largest(holds)).expect("between 0 and a finite bound")
}

/// The largest number that was seen to hold, between 0, which does, and a power of two that does not.
fn largest(holds: impl Fn(f64) -> bool) -> f64 {
    let mut above = 1.0;
    while holds(above) {
        above *= 2.0;
    }
    bisect(0.0, above, holds)
}

/// Narrows the gap between a point where `holds` is true and one where it is not, down to neighbouring doubles, and
/// returns the last point where it was seen to be true. That, and not monotonicity, is what callers rely on.
fn bisect(mut good: f64, mut bad: f64, holds: impl Fn(f64) -> bool) -> f64 {
    loop {
        let middle = 0.5 * (good + bad);
        if middle == good || middle == bad {
            return good;
        }
        if holds(middle) {
            good = middle;
        } else {
            bad = middle;
        }
    }
}

/// Lowers `start` by ever larger steps until `holds`; the bounds above miss by a few units in the last place at most.
fn lower_until<T: Copy, E: std::fmt::Debug>(
    start: f64,
    wrap: impl Fn(f64) -> Result<T, E>,
    holds: impl Fn(T) -> bool,
) -> T {
    let mut step = f64::EPSILON;
    let mut value = start;
    loop {
        let candidate = wrap(value).expect("between 0 and a finite bound");
        if holds(candidate) {
            return candidate;
        }
        value = if step < 1.0 { value * (1.0 - step) } else { 0.0 };
        step *= 2.0;
    }
}

/// Largest rho whose composed Gaussians are `mu`-GDP, rounded down: `mu^2 / 2`.
pub(crate) fn mu_to_rho_down(mu: GdpMu) -> ZcdpRho {
    ZcdpRho::new((0.5 * mul_down(mu.value(), mu.value())).clamp(0.0, 1e120)).expect("clamped to the range")
}
