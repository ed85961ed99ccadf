//! The verdict in words.

use std::fmt;

use super::{ConvexReport, StrongReport, StrongVerdict, Theory};

impl fmt::Display for Theory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.strongly_convex)?;
        write!(f, "{}", self.convex)
    }
}

impl fmt::Display for StrongReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Strongly convex (Theorem 4): ")?;
        let Self { needed, available, shortfall, .. } = self;
        let rate = self.rate.as_ref();
        match self.verdict {
            StrongVerdict::NotStronglyConvexAndSmooth => f.write_str(
                "the theorem says nothing here because the objective is not both strongly convex and smooth.",
            ),
            StrongVerdict::PreconditionFails => write!(
                f,
                "the theorem says nothing here because on this graph it asks for 1 + ζ > {needed:.4}, and for this \
                 objective 1 + ζ stays below {available:.4} whatever constants are chosen: short by a factor of \
                 {shortfall:.3}.",
            ),
            StrongVerdict::SignlessSingular => write!(
                f,
                "the theorem says nothing here because the graph is bipartite. Its condition holds to the letter \
                 ({available:.4} against {needed:.4}), but only because the zero singular value of L₊ is left \
                 out, and the proof needs L₊ to be invertible.",
            ),
            StrongVerdict::ConstantsFail => write!(
                f,
                "the precondition can be met (1 + ζ can approach {available:.4}, needed {needed:.4}) but not with the \
                 constants that were given; leave them open and feasible ones are chosen.",
            ),
            StrongVerdict::DecayTooSlow => write!(
                f,
                "there is a rate, W = {:.6}, but the theorem wants the noise to decay faster than that: choose \
                 a decay below it.",
                rate.map_or(f64::NAN, |r| r.contraction),
            ),
            StrongVerdict::OtherPenalty => write!(
                f,
                "there is a rate, W = {:.6}, but for another penalty: the theorem fixes it to {:.4e}.",
                rate.map_or(f64::NAN, |r| r.contraction),
                rate.map_or(f64::NAN, |r| r.required_penalty),
            ),
            StrongVerdict::Applies => write!(
                f,
                "all conditions hold, with rate W = {:.6}. The gain that it rests on changes with the unit of the \
                 objective, so take it as what the paper prints and not as a promise.",
                rate.map_or(f64::NAN, |r| r.contraction),
            ),
        }
    }
}

impl fmt::Display for ConvexReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Convex (Theorem 5): E[f(x̂) − f*] is bounded by ")?;
        match (self.paper, self.corrected) {
            (Some(paper), Some(corrected)) => write!(
                f,
                "{} as printed, {} with the term that its proof drops, and {} rederived",
                short(paper),
                short(corrected),
                short(self.rederived)
            )?,
            _ => write!(
                f,
                "{} rederived; as printed it says nothing without decay, where its noise term is infinite",
                short(self.rederived)
            )?,
        }
        f.write_str(
            ". It is about averages of un-noised iterates that are never released, and no guarantee of a run's \
             error.",
        )
    }
}

/// Four digits, with a power of ten only where one helps.
fn short(value: f64) -> String {
    if (1e-3..1e4).contains(&value.abs()) { format!("{value:.4}") } else { format!("{value:.3e}") }
}
