//! The gate: the only place where a [`Release`] is made, in a fixed order.

use std::fmt;

use crate::error::PrivacyError;
use crate::ledger::{Debit, Ledger};
use crate::mechanism::{Computed, Drawn, Mechanism, Payload};
use crate::report::PrivacyReport;
use crate::sample::NoiseSource;

/// Something that was paid for and may leave the site. Only [`Gate::release`] makes one.
///
/// It cannot be put together elsewhere:
///
/// ```compile_fail,E0451
/// use padmm_privacy::{Payload, Release};
/// let forged = Release { site: "a".to_string(), round: 1, value: Payload::Plain(vec![0.0]) };
/// ```
///
/// and what a peer sends cannot become one: it can only be read, as a [`Payload`] and then as a [`crate::PublicVector`].
///
/// ```compile_fail,E0277
/// use padmm_privacy::{Payload, Release};
/// let forged: Release<Payload> = serde_json::from_str("{}").unwrap();
/// ```
#[derive(Clone)]
pub struct Release<T> {
    site: String,
    round: u32,
    value: T,
}

impl<T> Release<T> {
    /// The site whose records were used.
    pub fn site(&self) -> &str {
        &self.site
    }

    /// Counted from 1; the gate makes at most one release for each round.
    pub fn round(&self) -> u32 {
        self.round
    }

    /// What may leave the site: sealed by the mechanism, its charge in the ledger.
    pub fn value(&self) -> &T {
        &self.value
    }
}

impl<T> fmt::Debug for Release<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Release(site {:?}, round {}, hidden)", self.site, self.round)
    }
}

/// The way out of one site for one run.
pub struct Gate {
    run: String,
    site: String,
    mechanism: Box<dyn Mechanism>,
    noise: Box<dyn NoiseSource>,
    ledger: Box<dyn Ledger>,
    next_round: u32,
}

impl Gate {
    /// A gate that starts at round 1, or continues after the last round that the ledger holds for this run and site.
    ///
    /// A ledger that keeps what was released lets a run that was interrupted go through its rounds from the first again, and
    /// gets the same payloads for them; one that keeps charges only makes the gate go on after the last of them.
    pub fn new(
        run: String,
        site: String,
        mechanism: Box<dyn Mechanism>,
        noise: Box<dyn NoiseSource>,
        ledger: Box<dyn Ledger>,
    ) -> Self {
        let own = ledger.debits().iter().filter(|debit| debit.run == run && debit.site == site);
        let rounds = || own.clone().map(|debit| debit.round);
        let kept = rounds().min().is_some_and(|first| {
            // An unreadable ledger is found out, and named, when its round is asked for.
            !matches!(ledger.recorded(&run, &site, first), Ok(None))
        });
        let next_round = if kept { 1 } else { rounds().max().unwrap_or(0).saturating_add(1) };
        Self { run, site, mechanism, noise, ledger, next_round }
    }

    /// Describe, debit, draw, compute, seal: the one way to a release.
    ///
    /// 1. *describe*: the mechanism says, without looking at data, what the round will do;
    /// 2. *debit*: the ledger records the charge or refuses it; a refused debit draws and computes nothing;
    /// 3. *draw*: the noise exists before any data is looked at;
    /// 4. *compute*: the caller's closure looks at data and certifies its result;
    /// 5. *seal*: the mechanism checks the certificate and the range, and adds the noise; the ledger makes charge and payload
    ///    durable, and only then is there a release.
    ///
    /// A round whose payload is in the ledger already, from before a restart, gives that payload: nothing is charged or
    /// drawn. The closure still runs, so that the caller's state becomes what it was, and what it computes is thrown away.
    ///
    /// Guarantee: there is one payload for (run, site, round), permanently, and it is returned only if its charge is in the ledger. A
    /// failure after the debit leaves the debit and no release; that round is over, and the next is the one after it.
    /// A round that was repeated or skipped is refused before anything else happens.
    pub fn release<C: Into<Computed>, E: From<PrivacyError>>(
        &mut self,
        round: u32,
        compute: impl FnOnce(&Drawn) -> Result<C, E>,
    ) -> Result<Release<Payload>, E> {
        self.check_is_next(round)?;
        let event = self.mechanism.describe(round)?;
        if let Some(value) = self.ledger.recorded(&self.run, &self.site, round)? {
            value.check()?;
            self.next_round = round.saturating_add(1);
            compute(&Drawn::nothing(round))?;
            return Ok(Release { site: self.site.clone(), round, value });
        }
        let debit = Debit { run: self.run.clone(), site: self.site.clone(), round, event };
        self.ledger.debit(&debit)?;
        self.next_round = round.saturating_add(1);
        let drawn = self.mechanism.draw(round, self.noise.as_mut())?;
        let computed = compute(&drawn)?;
        let value = self.mechanism.seal(round, computed.into(), drawn)?;
        value.check()?;
        self.ledger.record(&debit, &value)?;
        Ok(Release { site: self.site.clone(), round, value })
    }

    fn check_is_next(&self, round: u32) -> Result<(), PrivacyError> {
        let expected = self.next_round;
        if round == expected { Ok(()) } else { Err(PrivacyError::RoundOutOfOrder { expected, found: round }) }
    }

    /// Moves past a round in which this site uses no data: nothing is charged, drawn or released.
    ///
    /// Refused unless `round` is the next one. Passing a round that was meant to be released only forgoes that release, and
    /// releasing in a round that is free is impossible, since the mechanism has no event to describe it by. A gate that
    /// is made anew continues after the last debit in its ledger, so free rounds after that debit are passed again; that
    /// is harmless, for nothing left in them.
    pub fn pass(&mut self, round: u32) -> Result<(), PrivacyError> {
        self.check_is_next(round)?;
        self.next_round = round.saturating_add(1);
        Ok(())
    }

    /// The only round that may be released now.
    pub fn next_round(&self) -> u32 {
        self.next_round
    }

    /// The guarantee over all rounds; `None` if the mechanism gives none.
    pub fn report(&self) -> Option<PrivacyReport> {
        self.mechanism.report()
    }

    /// Everything that was charged, by this gate or before it.
    pub fn debits(&self) -> &[Debit] {
        self.ledger.debits()
    }

    /// What the noise source says it is.
    pub fn noise_description(&self) -> &'static str {
        self.noise.description()
    }

    /// Whether the noise may protect real data.
    pub fn noise_is_secure(&self) -> bool {
        self.noise.is_secure()
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gate(run {:?}, site {:?}, next round {})", self.run, self.site, self.next_round)
    }
}
