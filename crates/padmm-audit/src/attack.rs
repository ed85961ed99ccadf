//! A run with an attacker in the neighbour's place, and what the attacker makes of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use padmm_core::algorithm::{DP_ADMM, TOKEN, token_walk};
use padmm_core::calibration::Calibration;
use padmm_core::message::{Content, Incoming, Outgoing, SiteIndex, Turn};
use padmm_privacy::{Debit, Ledger, Payload, PrivacyError};

use crate::bound::Trial;
use crate::canary::{Canary, schedule};
use crate::error::AuditError;
use crate::shadow::Shadow;
use crate::target::{Subject, Target};

/// What was observed in one run, or in many.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// One for each secret bit, run after run.
    pub trials: Vec<Trial>,
    /// `(x̃_k − x_k)/σ_k` of every round, coordinate by coordinate, run after run: standard normal if all is well.
    pub residuals: Vec<Vec<f64>>,
    /// The bits that the residuals belong to, as −1 and +1.
    pub secrets: Vec<f64>,
    /// How many coordinates of the residuals belong to one run.
    pub run_lengths: Vec<usize>,
    /// How often the lowest eight bits of a released integer had each value.
    pub low_bits: Vec<u64>,
    /// Charges and messages that do not fit each other.
    pub faults: Vec<String>,
    /// Releases that are not integers on the planned grid.
    pub noise_faults: Vec<String>,
    /// Whether all noise said of itself that it may protect records.
    pub noise_is_secure: bool,
}

/// The lowest bits of an integer that are counted.
pub(crate) const LOW_VALUES: usize = 256;

impl Evidence {
    fn new(rounds: u32) -> Self {
        Self {
            residuals: vec![vec![]; rounds as usize],
            low_bits: vec![0; LOW_VALUES],
            noise_is_secure: true,
            ..Self::default()
        }
    }

    /// The evidence of both, as if from one longer series of runs.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.trials.extend(other.trials);
        self.residuals.resize(self.residuals.len().max(other.residuals.len()), vec![]);
        for (all, more) in self.residuals.iter_mut().zip(other.residuals) {
            all.extend(more);
        }
        self.secrets.extend(other.secrets);
        self.run_lengths.extend(other.run_lengths);
        self.low_bits.resize(LOW_VALUES, 0);
        self.low_bits.iter_mut().zip(other.low_bits).for_each(|(a, b)| *a += b);
        self.faults.extend(other.faults);
        self.noise_faults.extend(other.noise_faults);
        self.noise_is_secure &= other.noise_is_secure;
        self
    }
}

/// What went through a site's ledger: what was recorded in this process, and what was looked up from before it.
#[derive(Clone, Default)]
struct Recorded(Arc<Mutex<Entries>>);

#[derive(Default)]
struct Entries {
    new: Vec<(u32, Payload)>,
    old: BTreeMap<u32, Payload>,
}

impl Recorded {
    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A ledger that the attacker looks into: an entry for every release, whoever the release is for.
struct Watched {
    inner: Box<dyn Ledger>,
    recorded: Recorded,
}

impl Ledger for Watched {
    fn debit(&mut self, debit: &Debit) -> Result<(), PrivacyError> {
        self.inner.debit(debit)
    }

    fn record(&mut self, debit: &Debit, payload: &Payload) -> Result<(), PrivacyError> {
        self.inner.record(debit, payload)?;
        self.recorded.entries().new.push((debit.round, payload.clone()));
        Ok(())
    }

    fn recorded(&self, run: &str, site: &str, round: u32) -> Result<Option<Payload>, PrivacyError> {
        let found = self.inner.recorded(run, site, round)?;
        if let Some(payload) = &found {
            self.recorded.entries().old.insert(round, payload.clone());
        }
        Ok(found)
    }

    fn debits(&self) -> &[Debit] {
        self.inner.debits()
    }
}

/// Goes through a run with the site and guesses its secrets.
pub fn attack(
    target: &dyn Target,
    canary: &Canary,
    calibration: &Calibration,
    secrets: &[f64],
    ledger: Box<dyn Ledger>,
) -> Result<Evidence, AuditError> {
    let rounds = canary.scene().plan.settings().rounds;
    let (recorded, mut subject) = watched(target, canary, calibration, secrets, ledger)?;
    let mut listener = Listener::new(canary, calibration, secrets, recorded)?;
    listener.go_through(subject.as_mut(), rounds)?;
    listener.check_charges(&subject.debits(), rounds);
    listener.evidence.noise_is_secure = subject.noise_is_secure();
    Ok(listener.finish())
}

/// What a site said in some rounds, and what was wrong with it.
pub(crate) struct Said {
    pub payloads: Vec<(u32, Payload)>,
    pub faults: Vec<String>,
}

/// Goes through the first rounds of a run and returns what was released in them.
pub(crate) fn payloads_of(
    target: &dyn Target,
    canary: &Canary,
    calibration: &Calibration,
    secrets: &[f64],
    ledger: Box<dyn Ledger>,
    rounds: u32,
) -> Result<Said, AuditError> {
    let (recorded, mut subject) = watched(target, canary, calibration, secrets, ledger)?;
    let mut listener = Listener::new(canary, calibration, secrets, recorded.clone())?;
    listener.go_through(subject.as_mut(), rounds)?;
    Ok(Said { payloads: listener.heard, faults: listener.evidence.faults })
}

fn watched(
    target: &dyn Target,
    canary: &Canary,
    calibration: &Calibration,
    secrets: &[f64],
    ledger: Box<dyn Ledger>,
) -> Result<(Recorded, Box<dyn Subject>), AuditError> {
    let recorded = Recorded::default();
    let watched = Box::new(Watched { inner: ledger, recorded: recorded.clone() });
    Ok((recorded, target.subject(canary.scene(), calibration, &canary.rows(secrets), watched)?))
}

/// What an attacker makes of a run that is over: the site's releases, and what its neighbour said in the same rounds.
pub fn replay(
    canary: &Canary,
    calibration: &Calibration,
    secrets: &[f64],
    releases: &[Payload],
    neighbour: &[Payload],
) -> Result<Evidence, AuditError> {
    let mut listener = Listener::new(canary, calibration, secrets, Recorded::default())?;
    for (round, (own, other)) in (1u32..).zip(releases.iter().zip(neighbour)) {
        listener.hear(round, own)?;
        listener.shadow.heard(&other.to_vec());
    }
    Ok(listener.finish())
}

/// What the attacker knows and concludes as the run goes along.
struct Listener<'a> {
    canary: &'a Canary,
    calibration: &'a Calibration,
    secrets: &'a [f64],
    shadow: Shadow,
    recorded: Recorded,
    /// Everything that was released, as the attacker knows it.
    heard: Vec<(u32, Payload)>,
    scores: Vec<f64>,
    squares: Vec<f64>,
    evidence: Evidence,
}

impl<'a> Listener<'a> {
    fn new(
        canary: &'a Canary,
        calibration: &'a Calibration,
        secrets: &'a [f64],
        recorded: Recorded,
    ) -> Result<Self, AuditError> {
        let scene = canary.scene();
        let n = secrets.len();
        let mut evidence = Evidence::new(schedule(scene, calibration)?.rounds());
        evidence.secrets = secrets.to_vec();
        evidence.run_lengths = vec![n];
        let shadow = Shadow::new(scene, calibration);
        let (heard, scores, squares) = (vec![], vec![0.0; n], vec![0.0; n]);
        Ok(Listener { canary, calibration, secrets, shadow, recorded, heard, scores, squares, evidence })
    }

    /// A release of the site: the log-likelihood ratio of both labels grows by this round's part,
    /// `(x̃ − ½(x⁺ + x⁻))(x⁺ − x⁻)/σ²`.
    fn hear(&mut self, round: u32, payload: &Payload) -> Result<(), AuditError> {
        let schedule = schedule(self.canary.scene(), self.calibration)?;
        let (Some(std), Some(exponent)) = (schedule.noise_std(round), schedule.grid_exponent(round)) else {
            self.fault(format!("released in round {round}, which its plan does not have"));
            return Ok(());
        };
        match payload {
            Payload::Grid { exponent: found, values } if *found == exponent => {
                for &value in &values[..self.secrets.len().min(values.len())] {
                    self.evidence.low_bits[value.rem_euclid(LOW_VALUES as i64) as usize] += 1;
                }
            }
            Payload::Grid { exponent: found, .. } => {
                let what = format!(
                    "the site released on the grid 2^{found} in round {round}, not 2^{exponent} as planned"
                );
                self.evidence.noise_faults.push(what);
            }
            Payload::Plain(_) => {
                let what =
                    format!("the site released floating-point numbers in round {round}, and no integers");
                self.evidence.noise_faults.push(what);
            }
        }
        let release = payload.to_vec();
        if release.len() != schedule.n_coordinates(round) {
            return Err(AuditError::Protocol(format!("released {} coordinates", release.len())));
        }
        let seen = self.shadow.view(round, &release);
        for (j, &secret) in self.secrets.iter().enumerate() {
            let (plus, minus) = (self.shadow.point(round, j, 1.0), self.shadow.point(round, j, -1.0));
            let (apart, middle) = ((plus - minus) / std, 0.5 * (plus + minus));
            self.scores[j] += (seen[j] - middle) / std * apart;
            self.squares[j] += apart * apart;
            let truth = if secret > 0.0 { plus } else { minus };
            self.evidence.residuals[round as usize - 1].push((seen[j] - truth) / std);
        }
        self.shadow.released(&release);
        self.heard.push((round, payload.clone()));
        Ok(())
    }

    fn fault(&mut self, what: String) {
        // One of a kind is enough; a run has many coordinates and rounds.
        if self.evidence.faults.len() < 8 {
            self.evidence.faults.push(format!("the site {what}"));
        }
    }

    /// Everything that came into the ledger since the last look.
    fn look(&mut self) -> Result<(), AuditError> {
        let new = std::mem::take(&mut self.recorded.entries().new);
        for (round, payload) in new {
            self.hear(round, &payload)?;
        }
        Ok(())
    }

    /// The site's message, after a look into its ledger: it must say nothing else than what was released.
    fn message(&mut self, subject: &mut dyn Subject) -> Result<Option<Outgoing>, AuditError> {
        let message = subject.poll_message()?;
        self.look()?;
        match message.as_ref().map(|m| &m.content) {
            Some(Content::Model(release)) => {
                let (round, value) = (release.round(), release.value());
                let is_heard = self.heard.last().is_some_and(|last| last.0 == round);
                let is_from_before = self.recorded.entries().old.get(&round) == Some(value);
                if !is_heard {
                    self.hear(round, value)?;
                }
                let is_last = self.heard.last().is_some_and(|last| last.1 == *value);
                if !(is_from_before || is_heard && is_last) {
                    self.fault(format!("sent something in round {round} that is not in its ledger"));
                }
            }
            Some(Content::Derived(derived)) if !is_close(derived.as_slice(), self.shadow.derived()) => {
                self.fault("passed on something that does not follow from its releases".to_owned());
            }
            _ => {}
        }
        Ok(message)
    }

    /// Plays the neighbour: says back what it hears, which keeps the site where its noise has carried it.
    fn go_through(&mut self, subject: &mut dyn Subject, rounds: u32) -> Result<(), AuditError> {
        let scene = self.canary.scene();
        let neighbour = SiteIndex(1 - scene.site);
        let missing =
            |round: u32| AuditError::Protocol(format!("owed a message in round {round} and said nothing"));
        if scene.plan.settings().algorithm == TOKEN {
            return self.pass_token(subject, rounds);
        }
        for round in 1..=rounds {
            self.message(subject)?.ok_or_else(|| missing(round))?;
            let Some((_, payload)) = self.heard.last().cloned() else { return Err(missing(round)) };
            let turn = if scene.plan.settings().algorithm == DP_ADMM { 2 * round } else { round };
            self.shadow.heard(&payload.to_vec());
            let reply = Incoming::decode(neighbour, Turn::model(turn), &payload)?;
            subject.handle_message(&reply)?;
        }
        Ok(())
    }

    /// The token's walk is public; the attacker hands the token back as it got it.
    fn pass_token(&mut self, subject: &mut dyn Subject, rounds: u32) -> Result<(), AuditError> {
        let scene = self.canary.scene();
        let walk = token_walk(2, scene.plan.settings().rounds);
        let me = scene.site as u32;
        for step in 0..2 * rounds as usize {
            while self.message(subject)?.is_some() {}
            if walk[step] != me && walk.get(step + 1) == Some(&me) {
                let token = Payload::Plain(self.shadow.derived().to_vec());
                let (from, turn) = (SiteIndex(walk[step] as usize), Turn::model(2 * step as u32 + 2));
                let message = Incoming::decode(from, turn, &token)?;
                subject.handle_message(&message)?;
            }
        }
        Ok(())
    }

    /// One charge for each round, and it is the planned one.
    fn check_charges(&mut self, debits: &[Debit], rounds: u32) {
        let planned = self.calibration.agents[self.canary.scene().site].noise.as_ref();
        for round in 1..=rounds {
            let of_round: Vec<_> = debits.iter().filter(|d| d.round == round).collect();
            let event = planned.and_then(|schedule| schedule.event(round));
            match of_round[..] {
                [] => self.fault(format!("was not charged for round {round}")),
                [one] if Some(one.event) == event => {}
                [_] => self.fault(format!("was charged for round {round} what its plan does not say")),
                _ => self.fault(format!("was charged for round {round} more than once")),
            }
        }
        let mut released: Vec<u32> = self.heard.iter().map(|h| h.0).collect();
        released.sort_unstable();
        if released != (1..=rounds).collect::<Vec<_>>() {
            self.fault("did not release exactly once in every round".to_owned());
        }
    }

    /// Scores in standard deviations: `N(±μ/2, 1)` where the noise is what it is said to be.
    fn finish(mut self) -> Evidence {
        let sums = self.scores.iter().zip(&self.squares).zip(self.secrets);
        self.evidence.trials = sums
            .map(|((score, square), &secret)| Trial {
                secret,
                score: score / square.sqrt().max(f64::MIN_POSITIVE),
            })
            .collect();
        self.evidence
    }
}

/// Equal up to the rounding of sums that were added up in another order.
fn is_close(a: &[f64], b: &[f64]) -> bool {
    let size = a.iter().chain(b).fold(0.0f64, |m, v| m.max(v.abs()));
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-12 * size)
}
