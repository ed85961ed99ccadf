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

    /// `w`: the curvature of the loss on average, around a good model; `logistic` is the rule's for balanced labels. Of losses that are
    /// curved in a part of their range only, it is that of the part of the records that is there (ACCURACY §3).
    pub(super) fn curvature(self, logistic: f64, rate: f64) -> f64 {
        match self.loss {
            Loss::HuberizedHinge { width } => 0.25f64.min(0.5 / width),
            Loss::Huber { .. } | Loss::Squared => 0.7,
            Loss::Logistic | Loss::Hinge => logistic * (rate * (1.0 - rate) / 0.186).min(1.0),
        }
    }

    /// How far margins are expected to be from the base rate's, squared and in units of logistic regression's.
    pub(super) fn reach(self) -> f64 {
        match self.loss {
            Loss::HuberizedHinge { .. } | Loss::Hinge => 1.0 / 3.0,
            // Labels from 0 to 1 vary by some tenths.
            Loss::Huber { .. } | Loss::Squared => 1.0 / 50.0,
            Loss::Logistic => 1.0,
        }
    }

    /// The best margin, if it is the same for all records.
    pub(super) fn base(self, rate: f64) -> f64 {
        match self.loss {
            // The minimum is at about ±1, whichever label is more frequent; where they are nearly balanced, noise must not decide that.
            Loss::HuberizedHinge { .. } | Loss::Hinge => (3.0 * (2.0 * rate - 1.0)).clamp(-1.0, 1.0),
            Loss::Huber { .. } | Loss::Squared => rate,
            Loss::Logistic => libm::log(rate / (1.0 - rate)),
        }
    }

    fn targets(self) -> Targets {
        match self.loss {
            Loss::HuberizedHinge { .. } | Loss::Hinge => Targets { zero: -1.0, one: 1.0 },
            Loss::Huber { .. } | Loss::Squared | Loss::Logistic => Targets { zero: 0.0, one: 1.0 },
        }
    }

    /// Slopes of records with label 1 and with label 0 at the base rate's model, and the curvature there; of other losses than the
    /// logistic those of least squares, whose first step needs no second.
    pub(super) fn first_step(self, rate: f64) -> (f64, f64, f64) {
        let Targets { zero, one } = self.targets();
        match self.loss {
            Loss::Logistic => (rate - one, rate - zero, rate * (1.0 - rate)),
            _ => (self.base(rate) - one, self.base(rate) - zero, 1.0),
        }
    }
}
