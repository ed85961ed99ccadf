//! How far to go along a direction, for smooth objectives.

use super::{Progress, VectorPool};
use crate::objective::{Objective, ObjectiveBuffers};
use crate::vector::{along, dot, norm};

/// Shortest step tried is 2 to minus this.
const MAX_HALVINGS: usize = 50;
/// Sufficient decrease of the value (Armijo).
const DECREASE: f64 = 1e-4;
/// A gradient that shrinks this much needs no look at the value.
const CONTRACTION: f64 = 0.5;
/// Differences of the value below this part of it are rounding.
const VALUE_ROUNDING: f64 = 1e-13;

#[derive(Default)]
pub(crate) struct Point {
    pub x: Vec<f64>,
    pub gradient: Vec<f64>,
}

impl Point {
    pub(crate) fn new(x: &[f64], pool: &mut VectorPool) -> Self {
        Self { x: pool.copy(x), gradient: pool.zeros(x.len()) }
    }
}

/// Moves `trial` to an acceptable point along `direction`; false if there is none within `halvings`.
///
/// A step that halves the smallest gradient of the whole solve is taken without a look at the value, which saves a pass over
/// the records; nearly all steps are of this kind, and because there can be only so many of them they cannot forever undo what
/// the value gained. Otherwise the value must decrease enough, or, where the decrease drowns in rounding, the gradient must shrink: it
/// resolves progress long after the value no longer does.
pub(crate) fn search(
    objective: &Objective<'_>,
    from: &Point,
    direction: &[f64],
    trial: &mut Point,
    halvings: usize,
    progress: &mut Progress,
    buffers: &mut ObjectiveBuffers,
) -> bool {
    let (size, descent) = (norm(&from.gradient), dot(&from.gradient, direction));
    progress.smallest_gradient = progress.smallest_gradient.min(size);
    let mut value = None;
    let mut step = 1.0;
    for _ in 0..=halvings.min(MAX_HALVINGS) {
        along(&from.x, step, direction, &mut trial.x);
        objective.gradient(&trial.x, &mut trial.gradient, buffers);
        progress.n_evaluations += 1;
        let trial_size = norm(&trial.gradient);
        if trial_size <= CONTRACTION * progress.smallest_gradient {
            return true;
        }
        let value = *value.get_or_insert_with(|| objective.value(&from.x, buffers));
        let trial_value = objective.value(&trial.x, buffers);
        let decreased = trial_value < value + DECREASE * step * descent;
        let unresolved = trial_value <= value + VALUE_ROUNDING * value.abs().max(1.0);
        if decreased || (unresolved && trial_size < size) {
            return true;
        }
        step *= 0.5;
    }
    false
}
