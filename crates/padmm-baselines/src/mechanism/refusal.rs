//! What only the compared methods refuse.

use padmm_privacy::PrivacyError;
use padmm_privacy::words::epsilon_text;

/// The part of objective perturbation that no noise can lower, over all rounds that use data, is as large as the budget.
pub(crate) fn jacobian_spends_budget(rounds: u32, spent: f64, epsilon: f64) -> PrivacyError {
    let reason = format!(
        "the Jacobian part of {rounds} private rounds alone spends epsilon = {}, and the budget is {}; \
         use a larger penalty, fewer rounds or a larger epsilon",
        epsilon_text(spent),
        epsilon_text(epsilon),
    );
    PrivacyError::Compared { reason, is_budget: true }
}

/// Why a round has no noise: it is free, or it lies outside the schedule.
pub(crate) fn missing_round(round: u32, rounds: u32) -> PrivacyError {
    if !(1..=rounds).contains(&round) {
        return PrivacyError::RoundOutsideSchedule { round, rounds };
    }
    let reason = format!(
        "round {round} uses no data and was not paid for, so nothing may be released in it; pass the round instead"
    );
    PrivacyError::Compared { reason, is_budget: false }
}
