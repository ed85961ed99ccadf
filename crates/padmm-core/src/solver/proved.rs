//! The solver that cannot fail: proximal gradient in twice the working precision, for a number of steps that is proved sufficient
//! from public numbers. It is slow, and only asked where a faster one has given up; because it is there, whether a site
//! stops does not depend on its records.
//!
//! Let `f` be the smooth part of the objective, `m ≤ ∇²f ≤ L`, and `h` the rest. `T(x) = prox_{h/L}(x − ∇f(x)/L)` is a contraction by
//! `1 − m/L` whose fixed point is the minimiser `x*`, and `‖x*‖ ≤ r` is public. Computed steps are off by at most `e`. From `x⁰ = 0`, with
//! `D_k = ‖x^k − x*‖` and `κ = L/m`:
//!
//! ```text
//! D_k ≤ (1 − 1/κ)^k r + κe ≤ exp(−k/κ) r + κe
//! ```
//!
//! so no iterate is longer than `2r + κe`, which bounds `e`. Without `h` the gradient at `x^k` is at most `L·D_k`. With it, the step itself
//! shows a subgradient: `∇f(x^k) − ∇f(x^{k−1}) + L(x^{k−1} − x^k)`, off by `Le`, which is at most `L(D_k + D_{k−1})` long, since
//! `I − ∇f/L` makes no distance longer.
//! After `k ≥ κ ln(32Lr/τ) + 2` steps, and with `κLe ≤ τ/8` (the *drift*), that is at most `2τ/32 + 2τ/8 + τ/8`. Rounding
//! `x^k` to doubles and evaluating its certificate adds at most twice what the *ratio* of [`crate::solvable`] bounds by τ/4. Together that is
//! less than τ, whatever the records are.

use super::twofold::Twofold;
use super::{Progress, Solution, Solver};
use crate::objective::Objective;

/// Steps between two looks whether the certificate is there already.
const STRIDE: u32 = 32;

/// Minimises from 0 by at most `passes` steps.
pub(crate) fn solve(solver: &mut Solver, objective: &Objective<'_>, passes: u32, tolerance: f64) -> Solution {
    let p = objective.n_features();
    let mut progress = Progress::new();
    let smoothness = objective.smoothness().expect("only smooth losses have a proof") * (1.0 + 1e-12);
    let mut x = vec![Twofold::default(); p];
    let (mut point, mut gradient) = (vec![0.0; p], vec![0.0; p]);
    let mut residual = f64::INFINITY;
    for k in 1..=passes {
        step(objective, smoothness, &mut x);
        progress.n_evaluations += 1;
        if k % STRIDE == 0 || k == passes {
            point.iter_mut().zip(&x).for_each(|(point, x)| *point = x.hi);
            objective.gradient(&point, &mut gradient, &mut solver.buffers);
            let size = objective.regularizer().smallest_subgradient(&point, &gradient);
            residual = objective.certificate(size, &point);
            if residual <= tolerance {
                break;
            }
        }
    }
    solver.forget_gradient();
    progress.finish(point, residual, tolerance)
}

/// `x ← prox_{h/L}(x − ∇f(x)/L)`
fn step(objective: &Objective<'_>, smoothness: f64, x: &mut [Twofold]) {
    let gradient = gradient(objective, x);
    for (x, g) in x.iter_mut().zip(&gradient) {
        x.add(-(g.hi / smoothness));
        *x = x.normal();
    }
    let regularizer = objective.regularizer();
    let threshold = regularizer.l1 / smoothness;
    if threshold > 0.0 {
        for (_, x) in x.iter_mut().enumerate().filter(|(j, _)| !regularizer.is_free(*j)) {
            let mut shrunk = *x;
            shrunk.add(-threshold.copysign(x.hi));
            let shrunk = shrunk.normal();
            *x = if shrunk.hi * x.hi > 0.0 { shrunk } else { Twofold::default() };
        }
    }
    for (range, weight) in &regularizer.groups {
        let (group, t) = (&mut x[range.clone()], weight / smoothness);
        let mut square = Twofold::default();
        for x in &*group {
            square.add_product(x.hi, x.hi);
            square.add_product(2.0 * x.hi, x.lo);
        }
        let factor = if square.hi > 0.0 { square.one_less_over_root(t) } else { Twofold::default() };
        let factor = if factor.hi > 0.0 { factor } else { Twofold::default() };
        group.iter_mut().for_each(|x| *x = x.times(factor));
    }
}

/// The smooth part's gradient, with sums in twice the precision.
fn gradient(objective: &Objective<'_>, x: &[Twofold]) -> Vec<Twofold> {
    let mut sums = vec![Twofold::default(); x.len()];
    add_records(objective, x, &mut sums);
    let curvature = objective.regularizer().curvature;
    for (j, (sum, x)) in sums.iter_mut().zip(x).enumerate() {
        let curved = objective.quadratic() + if objective.regularizer().is_free(j) { 0.0 } else { curvature };
        sum.add_product(curved, x.hi);
        sum.add_product(curved, x.lo);
    }
    sums.iter_mut().zip(objective.linear()).for_each(|(sum, l)| sum.add(*l));
    sums.iter_mut().for_each(|sum| *sum = sum.normal());
    sums
}

/// Adds the records' part of the gradient.
fn add_records(objective: &Objective<'_>, x: &[Twofold], sums: &mut [Twofold]) {
    for part in objective.parts() {
        for (r, row) in part.data.rows().enumerate() {
            let mut margin = Twofold::default();
            let mut see = |x: &Twofold, a: f64| {
                margin.add_product(x.hi, a);
                margin.add_product(x.lo, a);
            };
            x.iter().zip(row.numeric).for_each(|(x, &a)| see(x, a));
            row.hot.iter().for_each(|&j| see(&x[j as usize], 1.0));
            let margin = margin.normal().times(row.scale.into()).hi;
            let slope = objective.loss().capped_slope(row.label, margin, part.data.cap(r));
            let slope = part.weight * row.scale * slope;
            sums.iter_mut().zip(row.numeric).for_each(|(sum, &a)| sum.add_product(slope, a));
            row.hot.iter().for_each(|&j| sums[j as usize].add(slope));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dataset, FeatureSpace};
    use crate::loss::Loss;
    use crate::objective::Part;
    use crate::regularizer::{Regularizer, RegularizerTerm};
    use crate::solvable::{Demand, LocalBounds, MOST_DRIFT, MOST_RATIO};
    use crate::solver::Status;
    use crate::vector::norm;

    struct Uniform(u64);

    impl Uniform {
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        }
    }

    /// Problems up to the edge of what is allowed: wherever the judgement promises a number of passes, they suffice; and the minimiser is
    /// never longer than the public radius.
    #[test]
    fn the_promised_number_of_passes_is_enough() {
        let mut uniform = Uniform(7);
        let (mut promised, mut tightest, mut longest) = (0, 0.0f64, 0.0f64);
        for case in 0..1500u64 {
            let (p, n) = (3 + case as usize % 6, 1 + case as usize % 23);
            let space = FeatureSpace { groups: vec![0..2, 2..p], ..FeatureSpace::numeric(p) };
            let loss = [
                Loss::Logistic,
                Loss::HuberizedHinge { width: 0.2 },
                Loss::Huber { width: 1.5 },
                Loss::Quantile { level: 0.7, width: 0.3 },
                Loss::Poisson { cap: 3.0 },
            ][case as usize % 5];
            let strength = 0.05 * (1.0 + uniform.next());
            let regularizer = [
                Regularizer::None,
                Regularizer::L2 { strength },
                Regularizer::L1 { strength },
                Regularizer::ElasticNet { strength, l1_ratio: 0.4 },
                Regularizer::GroupLasso { strength },
            ][case as usize % 7 % 5];
            let regularizer = RegularizerTerm::new(&regularizer, &space, 1.0);
            let mut data = Dataset::new(p, p, 0, 1.0);
            for _ in 0..n {
                let row: Vec<f64> = (0..p).map(|_| 2.0 * uniform.next()).collect();
                data.push(&row, &[], uniform.next().signum());
            }
            // Every third case has capped slopes and rows as long as they are.
            let cap = (case % 7 % 3 == 1).then_some(0.4);
            let data = if let Some(cap) = cap { data.with_slope_cap(cap, 6.0) } else { data };
            let quadratic = 10f64.powf(-1.0 + uniform.next());
            let size = 10f64.powf(3.0 * (1.0 + uniform.next()));
            let linear: Vec<f64> = (0..p).map(|_| quadratic * size * uniform.next()).collect();
            let tolerance = 2e-6 / n as f64 * 10f64.powf(-2.0 * (1.0 + uniform.next()));
            let bounds =
                LocalBounds::new(loss, 1.0, &regularizer, n, p, p, data.norm_bound(), cap, tolerance);
            let judgement = bounds.judge(Demand::Solve { linear: norm(&linear), quadratic });
            let Some(passes) = judgement.passes.filter(|_| judgement.ratio <= MOST_RATIO) else { continue };
            promised += 1;
            tightest = tightest.max(judgement.ratio / MOST_RATIO).max(judgement.drift / MOST_DRIFT);
            let parts = [Part::mean(&data)];
            let objective =
                Objective::new(&parts, loss, &regularizer, &linear, quadratic).within(judgement.radius);
            let solution = solve(&mut Solver::new(), &objective, passes, tolerance);
            let residual = solution.residual;
            assert_eq!(solution.status, Status::Solved, "case {case}: {residual:e} > {tolerance:e}");
            longest = longest.max(norm(&solution.point) / judgement.radius);
        }
        assert!(promised > 700, "{promised}");
        // The cases come near the bounds that they are about.
        assert!(tightest > 0.8, "{tightest}");
        assert!((0.5..=1.0).contains(&longest), "{longest}");
    }
}
