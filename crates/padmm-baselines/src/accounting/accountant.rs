//! What accountants have in common: they add up events and say what the sum amounts to.

use padmm_privacy::{Delta, Epsilon, Event, PrivacyError, ZcdpRho};

/// Adds up events on one site's records, chosen adaptively or not.
///
/// Contract, checked by one test for all: nothing composed costs nothing; up to rounding, epsilon never falls with further events
/// nor with a smaller delta, and the order of events does not matter; a refused event changes nothing; all
/// rounding is upward.
pub trait Accountant {
    /// Adds an event, or refuses it and stays as it was.
    fn compose(&mut self, event: &Event) -> Result<(), PrivacyError>;

    /// The sum of charges, rounded up.
    fn rho(&self) -> ZcdpRho;

    /// The epsilon at `delta` of everything composed, rounded up.
    fn epsilon(&self, delta: Delta) -> Epsilon;

    /// The accounting rule as reports name it, such as "GDP, exact".
    fn name(&self) -> &'static str;
}
