//! Exact confidence limits of a probability, from a count (Clopper and Pearson 1934).

/// Limits move outward by this relative amount, which is more than the incomplete beta function misses by.
const OUTWARD: f64 = 1e-9;

/// The largest probability with which `count` or fewer of `trials` still have a chance of `error`; rounded up.
///
/// Whatever the true probability is, the limit is below it with a chance of at most `error`.
pub fn clopper_pearson_upper(count: u64, trials: u64, error: f64) -> f64 {
    assert!(count <= trials && trials > 0 && error > 0.0 && error < 1.0, "a count of some trials");
    if count == trials {
        return 1.0;
    }
    // P(X ≤ count) falls with p.
    let (mut low, mut high) = (count as f64 / trials as f64, 1.0);
    for _ in 0..80 {
        let middle = 0.5 * (low + high);
        if at_most(count, trials, middle) > error { low = middle } else { high = middle }
    }
    (high * (1.0 + OUTWARD)).min(1.0)
}

/// The smallest probability with which `count` or more of `trials` still have a chance of `error`; rounded down.
pub fn clopper_pearson_lower(count: u64, trials: u64, error: f64) -> f64 {
    (1.0 - clopper_pearson_upper(trials - count, trials, error)).max(0.0)
}

/// `P(X ≤ count)` of a binomial count: `I_{1−p}(trials − count, count + 1)`.
fn at_most(count: u64, trials: u64, p: f64) -> f64 {
    incomplete_beta((trials - count) as f64, count as f64 + 1.0, 1.0 - p)
}

/// The regularised incomplete beta function `I_x(a, b)`.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The continued fraction converges fast on this side of the mean only.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let log_front =
        libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b) + a * libm::log(x) + b * libm::log1p(-x)
            - libm::log(a);
    libm::exp(log_front) * beta_fraction(a, b, x)
}

/// The continued fraction of the incomplete beta function (DLMF 8.17.22), evaluated by Lentz's method. It takes about
/// `√max(a, b)` levels.
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away = |v: f64| if v.abs() < TINY { TINY } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for level in 1..100_000 {
        let m = f64::from(level);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        for term in [even, odd] {
            d = 1.0 / away(1.0 + term * d);
            c = away(1.0 + term / c);
            fraction *= d * c;
        }
        if (d * c - 1.0).abs() < 1e-15 {
            break;
        }
    }
    fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tail added up term by term, which shares nothing with the fraction.
    fn summed(count: u64, trials: u64, p: f64) -> f64 {
        let log_choose =
            |k: f64, n: f64| libm::lgamma(n + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0);
        let (n, q) = (trials as f64, 1.0 - p);
        (0..=count)
            .map(|k| libm::exp(log_choose(k as f64, n) + k as f64 * p.ln() + (n - k as f64) * q.ln()))
            .sum()
    }

    #[test]
    fn tails_are_the_sums_of_their_terms() {
        for (count, trials, p) in [
            (0, 1, 0.3),
            (3, 10, 0.5),
            (17, 50, 0.2),
            (430, 1000, 0.44),
            (43_760, 100_000, 0.44),
            (5, 100_000, 1e-4),
        ] {
            let (fast, slow) = (at_most(count, trials, p), summed(count, trials, p));
            assert!(
                (fast - slow).abs() < 1e-8 * slow.max(1e-6),
                "{count} of {trials}, {p}: {fast} and {slow}"
            );
        }
    }

    #[test]
    fn limits_have_closed_forms_at_the_ends_and_are_those_of_tables() {
        // None of n: 1 − error^(1/n). All of n: error^(1/n) from below.
        for (n, error) in [(10u64, 0.05), (1000, 0.001)] {
            let root = f64::powf(error, 1.0 / n as f64);
            assert!((clopper_pearson_upper(0, n, error) - (1.0 - root)).abs() < 1e-8);
            assert!((clopper_pearson_lower(n, n, error) - root).abs() < 1e-8);
            assert_eq!((clopper_pearson_upper(n, n, error), clopper_pearson_lower(0, n, error)), (1.0, 0.0));
        }
        // Two-sided 95 % limits of 5 of 20 in every textbook: 0.0866 and 0.4910.
        assert!((clopper_pearson_lower(5, 20, 0.025) - 0.086_571_5).abs() < 1e-6);
        assert!((clopper_pearson_upper(5, 20, 0.025) - 0.491_045_9).abs() < 1e-6);
    }

    #[test]
    fn limits_miss_no_more_often_than_they_say() {
        // Exact coverage: the chance of a count whose limit is below the truth, added up over all counts.
        for (trials, p, error) in [(60u64, 0.4, 0.05), (600, 0.02, 0.01), (200, 0.44, 0.001)] {
            let missed: f64 = (0..=trials)
                .filter(|&k| clopper_pearson_upper(k, trials, error) < p)
                .map(|k| summed(k, trials, p) - if k > 0 { summed(k - 1, trials, p) } else { 0.0 })
                .sum();
            assert!(missed <= error && missed > 0.05 * error, "{trials}, {p}: {missed} of {error}");
        }
    }
}
