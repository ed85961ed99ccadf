//! What differs between losses: how steep and how curved they are, and which margin stands for which label.
//!
//! All of it shapes the model alone. The guarantee needs nothing of it: terms are clipped whatever the loss is.

use crate::loss::Loss;

/// A loss as stage 0 and the steps see it. Labels are numbers from 0 to 1, and `π` is their mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Link {
    loss: Loss,
}

/// The margins that stand for labels 0 and 1 in a first step that is one of least squares.
struct Targets {
    zero: f64,
    one: f64,
}

impl Link {
    pub(super) fn of(loss: Loss) -> Self {
        Self { loss }
    }

    /// The label as a number from 0 to 1.
    pub(super) fn unit_label(self, label: f64) -> f64 {
        if self.loss.is_classification() { 0.5 * (label + 1.0) } else { label.clamp(0.0, 1.0) }
    }

    /// `L₁`: slopes are at most as steep.
    pub(super) fn steepest(self) -> f64 {
        self.loss.slope_bound().unwrap_or(1.0)
    }

    /// The slope that clipping is set by — EQUATIONS §8. Of most losses it is the steepest there is; of counts half of that, since few are
    /// near the cap.
    pub(super) fn clipped_at(self) -> f64 {
        match self.loss {
            Loss::Poisson { cap } => 0.5 * cap,
            _ => self.steepest(),
        }
    }

    /// `w`, EQUATIONS §8: the curvature of the loss on average, around a good model; `logistic` is the rule's for balanced labels. Of losses
    /// that are curved in a part of their range only, it is that of the part of the records that is there (ACCURACY §3).
    pub(super) fn curvature(self, logistic: f64, rate: f64) -> f64 {
        match self.loss {
            Loss::HuberizedHinge { width } => 0.25f64.min(0.5 / width),
            Loss::Huber { .. } | Loss::Squared => 0.7,
            Loss::Logistic | Loss::Hinge => logistic * (rate * (1.0 - rate) / 0.186).min(1.0),
            Loss::Quantile { level, width } => density_in_corner(level, width),
            // The mean of counts is that of their expectations. Stage 0 keeps the rate above its own noise.
            Loss::Poisson { cap } => cap * rate,
        }
    }

    /// How far margins are expected to be from the base rate's, squared and in units of logistic regression's.
    pub(super) fn reach(self) -> f64 {
        match self.loss {
            Loss::HuberizedHinge { .. } | Loss::Hinge => 1.0 / 3.0,
            // Labels from 0 to 1 vary by some tenths.
            Loss::Huber { .. } | Loss::Squared | Loss::Quantile { .. } => 1.0 / 50.0,
            Loss::Logistic | Loss::Poisson { .. } => 1.0,
        }
    }

    /// The best margin, if it is the same for all records.
    pub(super) fn base(self, rate: f64) -> f64 {
        match self.loss {
            // The minimum is at about ±1, whichever label is more frequent; where they are nearly balanced, noise must not decide that.
            Loss::HuberizedHinge { .. } | Loss::Hinge => (3.0 * (2.0 * rate - 1.0)).clamp(-1.0, 1.0),
            Loss::Huber { .. } | Loss::Squared => rate,
            Loss::Logistic => libm::log(rate / (1.0 - rate)),
            // A guess, since stage 0 knows nothing but the mean: as if the log-odds of labels were spread like a logistic variable of scale
            // ⅓ around that of the mean, which is a standard deviation of 0.15 around a half. It is the mean where the median is asked for.
            Loss::Quantile { level, .. } => {
                let log_odds = |share: f64| libm::log(share / (1.0 - share));
                1.0 / (1.0 + libm::exp(-log_odds(rate) - log_odds(level) / 3.0))
            }
            Loss::Poisson { cap } => libm::log(cap * rate),
        }
    }

    fn targets(self) -> Targets {
        match self.loss {
            Loss::HuberizedHinge { .. } | Loss::Hinge => Targets { zero: -1.0, one: 1.0 },
            _ => Targets { zero: 0.0, one: 1.0 },
        }
    }

    /// Slopes of records with label 1 and with label 0 at the base rate's model, and the curvature there; of other losses than the
    /// logistic and that of counts those of least squares, whose first step needs no second.
    pub(super) fn first_step(self, rate: f64) -> (f64, f64, f64) {
        let Targets { zero, one } = self.targets();
        match self.loss {
            Loss::Logistic => (rate - one, rate - zero, rate * (1.0 - rate)),
            Loss::Poisson { cap } => (cap * (rate - one), cap * (rate - zero), cap * rate),
            // How labels differ is told apart around their mean; where the quantile is, the base has said.
            Loss::Quantile { .. } => (rate - one, rate - zero, 1.0),
            _ => (self.base(rate) - one, self.base(rate) - zero, 1.0),
        }
    }
}

/// How far labels from 0 to 1 are expected to be spread around what is predicted: the scale of a logistic variable, a standard deviation of
/// 0.1. At the median and with a width of 0.05 the corner then has 0.42 of the records, which is what made data have (ACCURACY §3).
const USUAL_SPREAD: f64 = 0.055;

/// The part of the records that a corner of this width has around a quantile, for each unit of its length: `P(|u| ≤ h)/2h` of a logistic
/// variable of the usual spread whose quantile is at zero. As the width goes to zero it becomes the density there, where `1/2h` would have no
/// end.
fn density_in_corner(level: f64, width: f64) -> f64 {
    // σ(a + d) − σ(a − d) without the difference; beyond a `d` of 30 nothing is left outside.
    let a = libm::log(level / (1.0 - level));
    let d = (width / USUAL_SPREAD).min(30.0);
    0.5 / width * libm::sinh(d) / (libm::cosh(a) + libm::cosh(d))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_density_in_a_corner_is_that_of_a_logistic_variable() {
        let share = |x: f64| 1.0 / (1.0 + (-x).exp());
        for (level, width) in [(0.5f64, 0.05), (0.9, 0.02), (0.02, 0.3), (0.7, 3.0)] {
            let (a, d) = ((level / (1.0 - level)).ln(), width / USUAL_SPREAD);
            let expected = (share(a + d) - share(a - d)) / (2.0 * width);
            assert!((density_in_corner(level, width) / expected - 1.0).abs() < 1e-12, "{level}, {width}");
        }
        assert!((density_in_corner(0.5, 0.05) * 0.1 - 0.42).abs() < 0.01, "that of the specification");
        assert!((density_in_corner(0.9, 1e-50) - 0.09 / USUAL_SPREAD).abs() < 1e-12, "the density itself");
        assert!((density_in_corner(0.9, 1e50) * 2e50 - 1.0).abs() < 1e-12, "all records");
    }
}
