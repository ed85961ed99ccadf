//! What an audit comes to.

use padmm_privacy::Delta;
use padmm_privacy::words::{epsilon_text, lower_text};
use serde::Serialize;

use crate::audit::AuditRequest;
use crate::bound::{Bounds, Trial, bounds, least_error};
use crate::error::AuditError;

/// One thing that a guess cannot see, and what was found out about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What was found; nothing if all is well.
    pub findings: Vec<String>,
}

impl Check {
    /// A check that has found nothing so far.
    pub fn passed() -> Self {
        Self { findings: vec![] }
    }

    /// Whether there are no findings.
    pub fn is_passed(&self) -> bool {
        self.findings.is_empty()
    }

    /// Adds a finding, so that the check no longer passes.
    pub fn fail(&mut self, finding: String) {
        self.findings.push(finding);
    }
}

/// What a guess cannot see, one check each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checks {
    /// The noise is independent and of the charged size.
    pub whiteness: Check,
    /// There is one payload and one charge for each round, across restarts.
    pub one_payload: Check,
    /// Whether a site stops does not depend on its records.
    pub stopping: Check,
    /// Files that differ in one record get the same answer from the site.
    pub refusals: Check,
}

impl Checks {
    /// Each check under the name that the JSON summary uses.
    pub fn all(&self) -> [(&'static str, &Check); 4] {
        [
            ("whiteness", &self.whiteness),
            ("one_payload", &self.one_payload),
            ("stopping", &self.stopping),
            ("refusals", &self.refusals),
        ]
    }
}

/// A bound is reported with whatever confidence was asked for; a program is accused with no less than this, because at 95 % a sound one
/// would be accused once in twenty audits.
pub const ACCUSING_CONFIDENCE: f64 = 0.999;

/// What the attack and the checks together say about a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// What the program says that it spends.
    pub claimed_epsilon: f64,
    /// The δ that the ε holds at.
    pub delta: f64,
    /// The claim as a Gaussian parameter.
    pub mu_claimed: f64,
    /// What the attack proves, with the confidence that was asked for.
    pub bounds: Bounds,
    /// What it proves with at least [`ACCUSING_CONFIDENCE`]: the program is accused by this.
    pub accusing: Bounds,
    /// What a guess cannot see, one check each.
    pub checks: Checks,
}

#[derive(Serialize)]
struct Summary {
    claimed_epsilon: f64,
    delta: f64,
    tests: usize,
    lower_bound_epsilon: f64,
    lower_bound_direct: f64,
    confidence: f64,
    mu_claimed: f64,
    mu_measured: f64,
    checks: Outcomes,
    passed: bool,
}

#[derive(Serialize)]
struct Outcomes {
    whiteness: bool,
    one_payload: bool,
    stopping: bool,
    refusals: bool,
}

impl Verdict {
    /// What these guesses and checks come to.
    pub fn of(
        request: &AuditRequest,
        mu_claimed: f64,
        trials: &[Trial],
        checks: Checks,
    ) -> Result<Self, AuditError> {
        let (claimed_epsilon, delta) = (request.epsilon, request.delta);
        let with = |confidence: f64| bounds(trials, Delta::new(delta)?, confidence);
        let accusing = with(request.confidence.max(ACCUSING_CONFIDENCE))?;
        Ok(Self { claimed_epsilon, delta, mu_claimed, bounds: with(request.confidence)?, accusing, checks })
    }

    /// Whether more than the claim is proved to have been spent, beyond reasonable doubt.
    pub fn exceeds_claim(&self) -> bool {
        // Written so that a bound that is not a number counts as one that exceeds.
        let is_within = |bound: f64| bound <= self.claimed_epsilon;
        !is_within(self.accusing.epsilon_lower) || !is_within(self.accusing.epsilon_direct)
    }

    /// Whether the claim stands and every check found nothing.
    pub fn is_passed(&self) -> bool {
        !self.exceeds_claim() && self.checks.all().iter().all(|(_, check)| check.is_passed())
    }

    /// The error rate below which no attacker may get.
    pub fn least_error(&self) -> f64 {
        least_error(self.mu_claimed)
    }

    /// Everything that was found, in words.
    pub fn findings(&self) -> Vec<String> {
        let mut found = vec![];
        if self.exceeds_claim() {
            found.push(format!(
                "ε is at least {} with {} % confidence ({} without any assumption on the noise), and {} is claimed",
                lower_text(self.accusing.epsilon_lower),
                100.0 * self.accusing.confidence,
                lower_text(self.accusing.epsilon_direct),
                epsilon_text(self.claimed_epsilon)
            ));
        }
        let named = |(name, check): &(&str, &Check)| {
            check.findings.iter().map(|f| format!("{}: {f}", name.replace('_', " "))).collect::<Vec<_>>()
        };
        found.extend(self.checks.all().iter().flat_map(named));
        found
    }

    /// As a JSON object with a fixed set of keys.
    pub fn to_json(&self) -> serde_json::Value {
        let outcome = |check: &Check| check.is_passed();
        let summary = Summary {
            claimed_epsilon: self.claimed_epsilon,
            delta: self.delta,
            tests: self.bounds.tests,
            lower_bound_epsilon: self.bounds.epsilon_lower,
            lower_bound_direct: self.bounds.epsilon_direct,
            confidence: self.bounds.confidence,
            mu_claimed: self.mu_claimed,
            mu_measured: self.bounds.mu_measured,
            checks: Outcomes {
                whiteness: outcome(&self.checks.whiteness),
                one_payload: outcome(&self.checks.one_payload),
                stopping: outcome(&self.checks.stopping),
                refusals: outcome(&self.checks.refusals),
            },
            passed: self.is_passed(),
        };
        serde_json::to_value(summary).expect("numbers and names are JSON")
    }
}
