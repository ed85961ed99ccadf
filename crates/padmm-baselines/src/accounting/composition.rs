//! What pure mechanisms amount to when they are composed: four valid answers, side by side.

#![allow(clippy::float_cmp, reason = "what is meant is equality to the bit")]

use padmm_privacy::outward::{add_up, mul_up};
use padmm_privacy::{
    Budget, Compositions, Delta, Event, PrivacyError, ZcdpRho, paper_epsilon, require, zcdp_epsilon,
};
use serde::{Deserialize, Serialize};

use crate::accounting::privacy_loss::{LossDistribution, LossLattice};
use crate::accounting::renyi::RenyiCurve;

/// More steps than this belong to no plan.
const MOST_STEPS: u32 = 1_000_000;
/// A search ends when it has narrowed its answer down to this fraction.
pub(crate) const SEARCH_PRECISION: f64 = 1e-14;
/// On a lattice the cost is a staircase, and looking for the very edge of a step gains nothing.
const LATTICE_PRECISION: f64 = 1e-7;

/// By which theorem the epsilons of pure mechanisms are added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompositionRule {
    /// The smallest of the other four, each of which is valid.
    #[default]
    Best,
    /// The sum, at delta = 0: what the published methods use.
    Basic,
    /// Charges of `epsilon^2 / 2` in zCDP, then the paper's conversion.
    Zcdp,
    /// Renyi divergences of randomised response, then the best order.
    Rdp,
    /// The optimal composition theorem for pure mechanisms.
    Exact,
}

impl CompositionRule {
    /// Selects the epsilon that belongs to this rule.
    pub fn pick(self, epsilons: &Compositions) -> f64 {
        match self {
            Self::Best => best(epsilons),
            Self::Basic => epsilons.basic,
            Self::Zcdp => epsilons.zcdp,
            Self::Rdp => epsilons.rdp,
            Self::Exact => epsilons.exact,
        }
    }
}

/// The smallest; every one of them is valid at the delta that was asked for.
pub(crate) fn best(all: &Compositions) -> f64 {
    all.basic.min(all.zcdp).min(all.rdp).min(all.exact)
}

/// Composition of mechanisms that are `epsilons[k]`-private, adaptively or not, at `delta`, rounded up.
///
/// ```text
/// basic:  sum of epsilon_k
/// zcdp:   rho + 2 sqrt(rho ln(1/delta)),   rho = sum of epsilon_k^2 / 2            (Bun, Steinke 2016)
/// rdp:    min over orders a > 1 of the sum of D_a(epsilon_k), converted           (Canonne, Kamath, Steinke 2020)
/// exact:  the epsilon at which optimal composition reaches delta                  (Kairouz, Oh, Viswanath 2015)
/// ```
///
/// Guarantee: each number is at least the true value of its bound, and so each is a valid epsilon. Equal steps are
/// composed without loss. Unequal ones are rounded up to a lattice, by less than a part in 2^4 to 2^12 of the largest (2^9
/// for 50 steps), and beyond 2048 of them the lattice is left out; what is reported as exact is then the smallest of what
/// is valid. So `exact` is never above the others, as optimality demands.
pub fn compose_pure(epsilons: &[f64], delta: Delta) -> Result<Compositions, PrivacyError> {
    let steps = Steps::new(epsilons)?;
    let (basic, zcdp, rdp) = (steps.basic(), steps.zcdp(delta), steps.rdp(delta));
    let exact = steps.lattice(delta).min(basic).min(zcdp).min(rdp);
    Ok(Compositions { basic, zcdp, rdp, exact })
}

/// The largest epsilon that each of `steps` equal mechanisms may have within the budget, rounded down.
///
/// Guarantee: for the returned value, [`compose_pure`] by this rule is at most `budget.epsilon`.
pub fn per_step_epsilon(budget: Budget, steps: u32, rule: CompositionRule) -> Result<f64, PrivacyError> {
    let budget = budget.checked()?;
    require((1..=MOST_STEPS).contains(&steps), "steps", f64::from(steps), "between 1 and 1000000")?;
    let share = budget.epsilon.value() / f64::from(steps);
    let cost =
        |epsilon: f64| Steps::equal(epsilon, steps).map_or(f64::INFINITY, |all| all.cost(budget.delta, rule));
    let found = largest_within(budget.epsilon.value(), share, SEARCH_PRECISION, cost);
    Ok(found.expect("steps that cost next to nothing fit into any budget"))
}

/// The largest x, up to the fraction `precision`, with `cost(x) <= limit`; `None` if not even `2^-40 start` is within it.
///
/// Whatever is returned was seen to cost at most the limit; that, and not that the cost grows with x, is what callers rely
/// on.
///
/// Regula falsi with the Illinois rule, with a bisection whenever three steps did not halve the gap.
pub(crate) fn largest_within(
    limit: f64,
    start: f64,
    precision: f64,
    cost: impl Fn(f64) -> f64,
) -> Option<f64> {
    assert!(start > 0.0, "a search goes upward from a positive number");
    let (mut good, mut bad) = (libm::scalbn(start, -40), start);
    let (mut spare, mut excess) = (limit - cost(good), cost(bad) - limit);
    if spare.is_nan() || spare < 0.0 {
        return None;
    }
    while excess <= 0.0 {
        (good, spare, bad) = (bad, -excess, 2.0 * bad);
        excess = cost(bad) - limit;
    }
    let mut gap = bad - good;
    for step in 1u32.. {
        if bad - good <= precision * bad {
            break;
        }
        let falsi = good + (bad - good) * (spare / (spare + excess));
        let stalled = step % 3 == 0 && bad - good > 0.5 * std::mem::replace(&mut gap, bad - good);
        let inside = falsi > good && falsi < bad;
        let middle = if stalled || !inside { 0.5 * (good + bad) } else { falsi };
        if middle <= good || middle >= bad {
            break;
        }
        let over = cost(middle) - limit;
        if over <= 0.0 {
            (good, spare) = (middle, -over);
            excess *= 0.5;
        } else {
            (bad, excess) = (middle, over.min(f64::MAX));
            spare *= 0.5;
        }
    }
    Some(good)
}

/// A checked list of epsilons, with equal ones grouped.
pub(crate) struct Steps<'a> {
    /// All of them, in order; empty where `groups` says everything.
    list: &'a [f64],
    /// (epsilon, how many), without zeros.
    groups: Vec<(f64, u32)>,
    curve: RenyiCurve,
}

impl<'a> Steps<'a> {
    /// Checks that every epsilon is finite and not negative.
    pub(crate) fn new(epsilons: &'a [f64]) -> Result<Self, PrivacyError> {
        require(epsilons.len() <= MOST_STEPS as usize, "steps", epsilons.len() as f64, "at most 1000000")?;
        for &epsilon in epsilons {
            require(epsilon >= 0.0 && epsilon.is_finite(), "epsilon", epsilon, "finite and >= 0")?;
        }
        let mut sorted: Vec<f64> = epsilons.iter().copied().filter(|&epsilon| epsilon > 0.0).collect();
        sorted.sort_by(f64::total_cmp);
        let groups = sorted.chunk_by(|a, b| a == b).map(|equal| (equal[0], equal.len() as u32)).collect();
        Self::from_groups(epsilons, groups)
    }

    fn equal(epsilon: f64, count: u32) -> Result<Steps<'static>, PrivacyError> {
        Steps::from_groups(&[], if epsilon > 0.0 { vec![(epsilon, count)] } else { vec![] })
    }

    fn from_groups(list: &'a [f64], groups: Vec<(f64, u32)>) -> Result<Self, PrivacyError> {
        let mut curve = RenyiCurve::default();
        for &(epsilon, count) in &groups {
            curve.add_many(&Event::PureDp { epsilon }, count)?;
        }
        Ok(Self { list, groups, curve })
    }

    /// How closely it pays to search for the largest steps that a budget allows.
    pub(crate) fn search_precision(&self, rule: CompositionRule) -> f64 {
        match rule {
            CompositionRule::Best | CompositionRule::Exact if self.groups.len() > 1 => LATTICE_PRECISION,
            _ => SEARCH_PRECISION,
        }
    }

    fn basic(&self) -> f64 {
        let add = |sum, &(epsilon, count): &(f64, u32)| add_up(sum, mul_up(f64::from(count), epsilon));
        match self.groups[..] {
            // One mechanism is what it is, to the bit.
            [(epsilon, 1)] => epsilon,
            _ => self.groups.iter().fold(0.0, add),
        }
    }

    fn zcdp(&self, delta: Delta) -> f64 {
        paper_epsilon(self.curve.rho(), delta).value()
    }

    fn rdp(&self, delta: Delta) -> f64 {
        self.curve.epsilon(delta)
    }

    /// By the distribution of the privacy loss, or infinity where that is not formed.
    fn lattice(&self, delta: Delta) -> f64 {
        match self.groups[..] {
            [] => 0.0,
            [(epsilon, count)] => LossDistribution::equal(epsilon, count as usize).epsilon_up(delta),
            _ => LossLattice::for_steps(self.list).map_or(f64::INFINITY, |mut lattice| {
                self.list.iter().for_each(|&epsilon| lattice.push(epsilon));
                lattice.epsilon_up(delta)
            }),
        }
    }

    /// The epsilon by one rule, for calibration: never below what [`compose_pure`] reports for the same rule.
    ///
    /// Where the distribution is formed, Renyi divergences are not asked for the best: they beat it by the rounding to the
    /// lattice at most.
    pub(crate) fn cost(&self, delta: Delta, rule: CompositionRule) -> f64 {
        match rule {
            CompositionRule::Basic => self.basic(),
            CompositionRule::Zcdp => self.zcdp(delta),
            CompositionRule::Rdp => self.rdp(delta),
            CompositionRule::Best | CompositionRule::Exact => {
                let formed = self.lattice(delta);
                let exact = if formed.is_finite() { formed } else { self.rdp(delta) };
                exact.min(self.basic()).min(self.zcdp(delta))
            }
        }
    }
}

/// The epsilon after each step, as (best valid, sum), rounded up; `None` in the list costs nothing.
///
/// A beginning of a run is a post-processing of the run, so no entry exceeds `total`, what the whole list is worth. One
/// lattice, that of the whole list, serves all of it: each step is convolved once.
pub(crate) fn running_epsilon(
    epsilons: &[Option<f64>],
    delta: Delta,
    total: Compositions,
) -> Vec<(f64, f64)> {
    let charged: Vec<f64> = epsilons.iter().flatten().copied().collect();
    let all_equal = charged.windows(2).all(|pair| pair[0] == pair[1]);
    let mut lattice = if all_equal { None } else { LossLattice::for_steps(&charged) };
    let (mut count, mut basic, mut rho) = (0, 0.0, 0.0);
    let mut after = |epsilon: f64| {
        count += 1;
        basic = add_up(basic, epsilon);
        rho = add_up(rho, mul_up(0.5, mul_up(epsilon, epsilon)));
        let exact = match &mut lattice {
            Some(lattice) => {
                lattice.push(epsilon);
                lattice.epsilon_up(delta)
            }
            None if all_equal => LossDistribution::equal(epsilon, count).epsilon_up(delta),
            None => f64::INFINITY,
        };
        let zcdp = ZcdpRho::new(rho).map_or(f64::INFINITY, |rho| zcdp_epsilon(rho, delta).value());
        (exact.min(zcdp).min(basic).min(best(&total)), basic.min(total.basic))
    };
    let mut spent = (0.0, 0.0);
    let mut curve: Vec<_> = epsilons
        .iter()
        .map(|step| {
            if let Some(epsilon) = step {
                spent = after(*epsilon);
            }
            spent
        })
        .collect();
    // From the last charged step on the whole list has been spent.
    let last = epsilons.iter().rposition(Option::is_some).unwrap_or(epsilons.len());
    curve[last..].fill((best(&total), total.basic));
    curve
}
