//! A model of one's own: what a site makes, for itself, of the joint model and its own records.
//!
//! What never leaves a site needs no noise. So after a run a site may fit
//!
//! ```text
//! x = argmin (1/n) Σ ℓ(z, aᵀx) + (s/n)‖x − c‖²
//! ```
//!
//! over its own records, for several centres `c` and strengths `s`. From a centre without the joint model this is *own records alone*; at an
//! infinite strength, from the joint model itself, it is *the joint model as it is*; everything between the two is a candidate as well.
//! Cross-validation on the site's own records says how much each candidate is worth, and the combined model is their average with weights
//! that fall with the held-out loss (`Grid::weights`). Losses are convex in the margin, so an average is never worse than its members are
//! on average, while choosing a single one follows differences that are noise. On Adult, choosing was worse at all sizes of sites.
//!
//! **Everything here is computed from records without noise.** It is for use inside the site: a model made here is marked
//! ([`Model::own`](crate::model::Model::own)), and no file that is meant to leave may contain it.

mod measures;

use rayon::prelude::*;

use crate::data::{Dataset, FeatureSpace};
use crate::evaluate::score_all;
use crate::loss::Loss;
use crate::objective::{Objective, Part};
use crate::regularizer::RegularizerTerm;
use crate::solver::Solver;
use crate::vector::{add_scaled, norm};
pub use measures::{Calibration, Comparison, Estimate, Measures};

/// Said in every file that holds such a model, and wherever one is refused.
pub const NEVER_SENT: &str =
    "computed from this site's records without noise: for use inside the site, never to be sent";

/// With fewer records nothing can be learned from them, and the joint model is kept as it is.
pub const FEWEST_RECORDS: usize = 10;

/// Strengths `s` in the order in which they are solved, each from where the last one ended. With rows of norm 1, coefficients of a
/// prior `N(c, τ²)` have `s = 1/(2τ²)`: from coefficients that hardly leave the centre to some that records alone decide.
const STRENGTHS: [f64; 11] = [316.0, 100.0, 31.6, 10.0, 3.16, 1.0, 0.316, 0.1, 0.0316, 0.01, 0.00316];

/// Records from which on folds and strengths are thinned out: then own records decide by themselves, and passes over them cost.
const MANY_RECORDS: usize = 20_000;

/// What a candidate is drawn towards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Centre {
    /// The site's base rate and nothing else: the joint model is not used.
    BaseRate,
    /// The joint model as it is.
    Joint,
    /// The joint model with an intercept of the site's own.
    Shifted,
    /// The joint model with its margins stretched, too: a noisy model may be too sure of itself, or not sure enough.
    Recalibrated,
}

/// One candidate: a centre, and how strongly it is drawn there; infinitely for the centre itself.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Candidate {
    centre: Centre,
    strength: f64,
}

/// What a site has when the run is over.
#[derive(Clone, Copy)]
pub struct OwnInputs<'a> {
    /// The site's records; those that count for nothing are left out.
    pub records: &'a Dataset,
    /// The columns of records and model.
    pub space: &'a FeatureSpace,
    /// The loss of the joint model.
    pub loss: Loss,
    /// Coefficients of the joint model.
    pub joint: &'a [f64],
}

/// What cross-validation made of the site's records and the joint model.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnFit {
    /// Coefficients of the combined model.
    pub combined: Vec<f64>,
    /// Coefficients of the model from own records alone, by the same cross-validation.
    pub alone: Vec<f64>,
    /// How much of the combined model comes from candidates that use the joint model, between 0 and 1.
    pub joint_share: f64,
    /// Own, joint and combined on records that they had not seen; none where it was not asked for or records are too few.
    pub comparison: Option<Comparison>,
}

/// Fits the site's own model. `compare` asks for the comparison too, which costs some times as much: it cross-validates the whole of
/// this, the choice of weights included, so that no model is judged by records that it has seen in any way.
pub fn fit(inputs: &OwnInputs<'_>, compare: bool) -> OwnFit {
    assert_eq!(inputs.joint.len(), inputs.space.n_features(), "the joint model has the site's columns");
    let records = inputs.records.counted();
    let n = records.n_records();
    let joint = inputs.joint.to_vec();
    if n < FEWEST_RECORDS {
        return OwnFit { combined: joint.clone(), alone: joint, joint_share: 1.0, comparison: None };
    }
    let folds = Folds::of(&records, inputs.loss);
    let grid = Grid { candidates: candidates(n), inputs: OwnInputs { records: &records, ..*inputs } };
    // Losses of candidates on fold `j` that were fitted without folds `j` and `k`, by pairs: each fit serves both ways.
    let pairs = if compare { grid.pair_losses(&folds) } else { vec![] };
    let without = |k: usize| -> FoldResult {
        let (rest, aside) = folds.split(&records, &[k]);
        let points = grid.points(&rest);
        let tested = compare.then(|| {
            let sums: Vec<f64> = pairs_without(&pairs, k, grid.candidates.len());
            let of = |weights: Vec<f64>| aside.margins(&mix(&points, &weights));
            Tested {
                rows: folds.rows(k),
                alone: of(grid.weights(&sums, Grid::is_alone)),
                joint: aside.margins(inputs.joint),
                combined: of(grid.weights(&sums, |_| true)),
            }
        });
        FoldResult { losses: grid.losses(&aside, &points), tested }
    };
    let results: Vec<FoldResult> = (0..folds.n).into_par_iter().map(without).collect();
    let mut sums = vec![0.0; grid.candidates.len() * GROUPS];
    results.iter().for_each(|r| add_scaled(1.0, &r.losses, &mut sums));
    let points = grid.points(&records);
    let weights = grid.weights(&sums, |_| true);
    let alone = grid.weights(&sums, Grid::is_alone);
    let share =
        grid.candidates.iter().zip(&weights).filter(|(c, _)| !Grid::is_alone(c)).map(|(_, w)| w).sum();
    let tested: Option<Vec<Tested>> = results.into_iter().map(|r| r.tested).collect();
    let comparison = tested.map(|tested| {
        let margins = |of: fn(&Tested) -> &Vec<f64>| {
            let mut all = vec![0.0; n];
            for fold in &tested {
                fold.rows.iter().zip(of(fold)).for_each(|(&r, &t)| all[r] = t);
            }
            all
        };
        let [own, joint, combined] = [margins(|t| &t.alone), margins(|t| &t.joint), margins(|t| &t.combined)];
        Comparison::of(inputs.loss, records.labels(), folds.n, [&own, &joint, &combined])
    });
    OwnFit { combined: mix(&points, &weights), alone: mix(&points, &alone), joint_share: share, comparison }
}

/// What is found without one fold.
struct FoldResult {
    /// Losses of all candidates on the fold, by groups.
    losses: Vec<f64>,
    tested: Option<Tested>,
}

/// Margins of a fold's records by models that have not seen them.
struct Tested {
    rows: Vec<usize>,
    alone: Vec<f64>,
    joint: Vec<f64>,
    combined: Vec<f64>,
}

/// Losses of every candidate on a fold, by groups, fitted without that fold and another.
struct PairLosses {
    fitted_without: usize,
    losses: Vec<f64>,
}

/// Held-out losses of every candidate within the records that are not in fold `k`.
fn pairs_without(pairs: &[PairLosses], k: usize, n_candidates: usize) -> Vec<f64> {
    let mut sums = vec![0.0; n_candidates * GROUPS];
    for pair in pairs.iter().filter(|pair| pair.fitted_without == k) {
        add_scaled(1.0, &pair.losses, &mut sums);
    }
    sums
}

fn candidates(n_records: usize) -> Vec<Candidate> {
    let step = if n_records < MANY_RECORDS { 1 } else { 2 };
    let mut all = vec![Candidate { centre: Centre::Joint, strength: f64::INFINITY }];
    for centre in [Centre::BaseRate, Centre::Shifted, Centre::Recalibrated] {
        let finite = STRENGTHS.iter().step_by(step).copied();
        all.extend(
            std::iter::once(f64::INFINITY).chain(finite).map(|strength| Candidate { centre, strength }),
        );
    }
    all
}

/// The average of models, each with its weight.
fn mix(points: &[Vec<f64>], weights: &[f64]) -> Vec<f64> {
    let mut mean = vec![0.0; points[0].len()];
    points.iter().zip(weights).for_each(|(point, &weight)| add_scaled(weight, point, &mut mean));
    mean
}

/// All candidates for a site.
struct Grid<'a> {
    /// Those of one centre stand together, the strongest first.
    candidates: Vec<Candidate>,
    inputs: OwnInputs<'a>,
}

impl Grid<'_> {
    fn is_alone(candidate: &Candidate) -> bool {
        candidate.centre == Centre::BaseRate
    }

    /// Every candidate, fitted to `records`.
    fn points(&self, records: &Dataset) -> Vec<Vec<f64>> {
        let mut points: Vec<Vec<f64>> = Vec::with_capacity(self.candidates.len());
        for family in self.candidates.chunk_by(|a, b| a.centre == b.centre) {
            let centre = self.centre(records, family[0].centre);
            let (mut solver, mut start) = (Solver::new(), centre.clone());
            for candidate in family {
                if candidate.strength.is_finite() {
                    start =
                        ridge(&mut solver, records, self.inputs.loss, &centre, candidate.strength, &start);
                }
                points.push(start.clone());
            }
        }
        points
    }

    /// Where a family of candidates is drawn to, fitted to `records` where it has something to fit.
    fn centre(&self, records: &Dataset, centre: Centre) -> Vec<f64> {
        let OwnInputs { space, loss, joint, .. } = self.inputs;
        let Some(direction) = intercept_direction(space) else {
            return match centre {
                Centre::BaseRate => vec![0.0; joint.len()],
                _ => joint.to_vec(),
            };
        };
        let shift = records.margins(&direction);
        let size = shift.iter().map(|u| u.abs()).sum::<f64>() / shift.len() as f64;
        let unit = if size > 0.0 { LIKELY_SHIFT / size } else { 0.0 };
        let margins = records.margins(joint);
        let zero = vec![0.0; margins.len()];
        // (what is stretched, what is added unstretched)
        let (stretched, fixed) = match centre {
            Centre::Joint => return joint.to_vec(),
            Centre::BaseRate => (&zero, &zero),
            Centre::Shifted => (&zero, &margins),
            Centre::Recalibrated => (&margins, &zero),
        };
        let (slope, b) = stretch_and_shift(loss, records.labels(), stretched, fixed, &shift, unit);
        let mut point = direction;
        point.iter_mut().for_each(|v| *v *= b);
        match centre {
            Centre::Recalibrated => add_scaled(slope, joint, &mut point),
            Centre::Shifted => add_scaled(1.0, joint, &mut point),
            Centre::BaseRate | Centre::Joint => {}
        }
        point
    }

    /// Losses of `points` on records that were set aside, summed by groups of records: [`GROUPS`] sums for each point.
    fn losses(&self, aside: &Dataset, points: &[Vec<f64>]) -> Vec<f64> {
        let mut groups = vec![aside.empty_like(); GROUPS];
        // Folds are small, so the groups begin elsewhere in each of them; records have no order that matters here.
        let first = aside.labels().iter().filter(|z| **z > 0.0).count();
        aside.rows().enumerate().for_each(|(r, row)| groups[(first + r) % GROUPS].push_row(row));
        let groups: Vec<&Dataset> = groups.iter().filter(|g| g.n_records() > 0).collect();
        let points: Vec<&[f64]> = points.iter().map(|p| &p[..]).collect();
        let mut sums = vec![0.0; points.len() * GROUPS];
        for (scores, sums) in
            score_all(self.inputs.loss, &groups, &points, 0).iter().zip(sums.chunks_mut(GROUPS))
        {
            for ((mean, group), sum) in scores.part_losses.iter().zip(&groups).zip(sums) {
                *sum = mean * group.n_records() as f64;
            }
        }
        sums
    }

    fn pair_losses(&self, folds: &Folds) -> Vec<PairLosses> {
        let pairs: Vec<(usize, usize)> = (0..folds.n).flat_map(|j| (0..j).map(move |k| (j, k))).collect();
        let of = |&(j, k): &(usize, usize)| {
            let (rest, _) = folds.split(self.inputs.records, &[j, k]);
            let points = self.points(&rest);
            let on = |fold: usize| self.losses(&folds.split(self.inputs.records, &[fold]).1, &points);
            [PairLosses { fitted_without: k, losses: on(j) }, PairLosses { fitted_without: j, losses: on(k) }]
        };
        pairs.par_iter().flat_map_iter(of).collect()
    }

    /// Weights `exp(−excess/unit)` of the candidates that are `used`, which sum to one; the excess is that of a candidate's held-out loss
    /// over the least one.
    ///
    /// The unit is 1 plus half the excess' standard error. With `1` alone the weights are the probabilities that candidates gave to unseen
    /// labels; but of a thousand records an excess of ten is nothing unusual between equals, and `e^{−10}` would choose one of them by
    /// chance.
    fn weights(&self, losses: &[f64], used: impl Fn(&Candidate) -> bool) -> Vec<f64> {
        let sums: Vec<&[f64]> = losses.chunks(GROUPS).collect();
        let total = |(c, sums): (&Candidate, &&[f64])| {
            let total: f64 = sums.iter().sum();
            if used(c) && total.is_finite() { total } else { f64::INFINITY }
        };
        let totals: Vec<f64> = self.candidates.iter().zip(&sums).map(total).collect();
        let best = (0..totals.len()).min_by(|&a, &b| totals[a].total_cmp(&totals[b])).unwrap_or(0);
        // A loss of regression is in units of the residuals' variance, which is about twice the mean loss.
        let natural = match self.inputs.loss {
            Loss::Huber { .. } | Loss::Squared => 2.0 * totals[best] / self.inputs.records.n_records() as f64,
            // That of a quantile is in units of the residuals' size, which it is on average.
            Loss::Quantile { .. } => totals[best] / self.inputs.records.n_records() as f64,
            _ => 1.0,
        };
        let weight = |c: usize| {
            let excess = totals[c] - totals[best];
            let unit = natural + 0.5 * std_error_of_sum(sums[c], sums[best]);
            // The best one is worth 1 even where everything fits perfectly and the unit is zero.
            if c == best { 1.0 } else { (-excess / unit.max(f64::MIN_POSITIVE)).exp() }
        };
        let weights: Vec<f64> = (0..totals.len()).map(weight).collect();
        let sum: f64 = weights.iter().sum();
        weights.into_iter().map(|w| w / sum).collect()
    }
}

/// Groups of records whose losses are summed: enough of them to see how much a difference depends on which records there are.
const GROUPS: usize = 16;

/// The standard error of `Σ a − Σ b`, from how the groups differ in it.
fn std_error_of_sum(a: &[f64], b: &[f64]) -> f64 {
    let differences: Vec<f64> = a.iter().zip(b).map(|(a, b)| a - b).collect();
    let n = differences.len() as f64;
    let mean = differences.iter().sum::<f64>() / n;
    (differences.iter().map(|d| (d - mean) * (d - mean)).sum::<f64>() * n / (n - 1.0)).sqrt()
}

/// Of a shift of margins, a standard deviation that is expected beforehand.
const LIKELY_SHIFT: f64 = 3.0;

/// A direction that adds the same to the margin of every record (but for the records' scale): the intercept, or else all values of one
/// categorical column. None where there is neither.
fn intercept_direction(space: &FeatureSpace) -> Option<Vec<f64>> {
    let mut direction = vec![0.0; space.n_features()];
    match (space.intercept, space.groups.iter().find(|g| g.start >= space.n_numeric)) {
        (Some(column), _) => direction[column] = 1.0,
        (None, Some(group)) => direction[group.clone()].fill(1.0),
        (None, None) => return None,
    }
    Some(direction)
}

/// `argmin (1/n) Σ ℓ(z, fixed + α·stretched + b·shift) + ((α − 1)² + (b/unit)²)/(2n)`: priors `N(1, 1)` for `α` and `N(0, unit²)` for `b`,
/// which keep both finite where records are separable or of one class.
///
/// It is solved as a problem of three numeric columns, the fixed one held at its coefficient 1 by a centre that it cannot leave.
fn stretch_and_shift(
    loss: Loss,
    labels: &[f64],
    stretched: &[f64],
    fixed: &[f64],
    shift: &[f64],
    unit: f64,
) -> (f64, f64) {
    // A coefficient of 1/HELD per unit of prior: what is fixed moves by a part of its size that does not matter.
    const HELD: f64 = 1e-4;
    let row = |r: usize| [stretched[r], shift[r] * unit, fixed[r] * HELD];
    let longest = (0..labels.len()).map(|r| norm(&row(r))).fold(1.0, f64::max);
    let mut table = Dataset::new(3, 3, 0, 2.0 * longest);
    labels.iter().enumerate().for_each(|(r, &label)| table.push(&row(r), &[], label));
    let centre = [1.0, 0.0, 1.0 / HELD];
    let point = ridge(&mut Solver::new(), &table, loss, &centre, 0.5, &centre);
    (point[0], point[1] * unit)
}

/// `argmin (1/n) Σ ℓ + (strength/n)‖x − centre‖²`, or as near to it as rounding allows.
fn ridge(
    solver: &mut Solver,
    records: &Dataset,
    loss: Loss,
    centre: &[f64],
    strength: f64,
    start: &[f64],
) -> Vec<f64> {
    let quadratic = 2.0 * strength / records.n_records() as f64;
    let linear: Vec<f64> = centre.iter().map(|c| -quadratic * c).collect();
    let (parts, none) = ([Part::mean(records)], RegularizerTerm::none());
    let objective = Objective::new(&parts, loss, &none, &linear, quadratic);
    let tolerance = if loss.curvature_bound().is_some() { 1e-6 } else { 1e-4 };
    solver.forget_gradient();
    solver.solve(&objective, start, tolerance).point
}

/// Which fold each record is in.
struct Folds {
    n: usize,
    of_record: Vec<usize>,
}

impl Folds {
    /// Records are dealt in their order, class by class, so that every fold has its part of a rare class and of every part of the file.
    fn of(records: &Dataset, loss: Loss) -> Self {
        let n = match records.n_records() {
            0..200 => 10,
            200..MANY_RECORDS => 5,
            _ => 3,
        };
        let mut dealt = [0; 2];
        let place = |&label: &f64| {
            let class = usize::from(loss.is_classification() && label > 0.0);
            dealt[class] += 1;
            // The second class is dealt from the other end, so that small folds are of one size.
            if class == 0 { (dealt[0] - 1) % n } else { n - 1 - (dealt[1] - 1) % n }
        };
        Self { n, of_record: records.labels().iter().map(place).collect() }
    }

    fn rows(&self, fold: usize) -> Vec<usize> {
        (0..self.of_record.len()).filter(|&r| self.of_record[r] == fold).collect()
    }

    /// The records outside of the folds `aside`, and those inside.
    fn split(&self, records: &Dataset, aside: &[usize]) -> (Dataset, Dataset) {
        let (mut outside, mut inside) = (records.empty_like(), records.empty_like());
        for (r, row) in records.rows().enumerate() {
            if aside.contains(&self.of_record[r]) { inside.push_row(row) } else { outside.push_row(row) }
        }
        (outside, inside)
    }
}
