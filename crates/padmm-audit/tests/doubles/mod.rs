//! Programs with a bug in them.

use std::sync::{Arc, Mutex};

use padmm_audit::*;
use padmm_core::agent::AgentError;
use padmm_core::calibration::Calibration;
use padmm_core::data::Dataset;
use padmm_core::message::{Content, Incoming, Outgoing, Recipients, SiteIndex, Turn};
use padmm_privacy::*;

/// The noise is made for more records than there are, so it is too small. Twice as many is half the sensitivity.
pub(crate) struct MoreRecords(pub f64);

impl Target for MoreRecords {
    fn calibration(&self, scene: &Scene) -> Result<Calibration, AuditError> {
        let more = |&n: &usize| (self.0 * n as f64) as usize;
        Shipped.calibration(&Scene { n_records: scene.n_records.iter().map(more).collect(), ..scene.clone() })
    }

    fn subject(
        &self,
        scene: &Scene,
        calibration: &Calibration,
        rows: &Rows,
        ledger: Box<dyn Ledger>,
    ) -> Result<Box<dyn Subject>, AuditError> {
        // The agent solves its true problem; its gate has the noise of the other.
        let gate = self.gate(scene, calibration, ledger)?;
        Ok(assemble(scene, &Shipped.calibration(scene)?, self.encode(scene, rows), gate))
    }
}

/// Rows are cut to √2·S.
pub(crate) struct LongRows;

impl LongRows {
    fn longer(scene: &Scene) -> Scene {
        Scene { norm_bound: 2f64.sqrt() * scene.norm_bound, ..scene.clone() }
    }
}

impl Target for LongRows {
    fn subject(
        &self,
        scene: &Scene,
        calibration: &Calibration,
        rows: &Rows,
        ledger: Box<dyn Ledger>,
    ) -> Result<Box<dyn Subject>, AuditError> {
        let (gate, longer) = (self.gate(scene, calibration, ledger)?, Self::longer(scene));
        Ok(assemble(&longer, &Shipped.calibration(&longer)?, self.encode(&longer, rows), gate))
    }
}

/// Uses its own un-noised iterate in the next round, as the paper's algorithm does when it is read literally.
pub(crate) struct UnNoised;

struct Literal {
    data: Dataset,
    gate: Gate,
    penalty: f64,
    rounds: u32,
    /// Where the next round is, and whether the site has spoken in it.
    next: (u32, bool),
    own: Vec<f64>,
    released: Vec<f64>,
    other: Vec<f64>,
    dual: Vec<f64>,
}

impl Target for UnNoised {
    fn subject(
        &self,
        scene: &Scene,
        calibration: &Calibration,
        rows: &Rows,
        ledger: Box<dyn Ledger>,
    ) -> Result<Box<dyn Subject>, AuditError> {
        let zeros = vec![0.0; scene.space.n_features()];
        Ok(Box::new(Literal {
            data: self.encode(scene, rows),
            gate: self.gate(scene, calibration, ledger)?,
            penalty: calibration.penalty,
            rounds: scene.plan.settings().rounds,
            next: (1, false),
            own: zeros.clone(),
            released: zeros.clone(),
            other: zeros.clone(),
            dual: zeros,
        }))
    }
}

impl Subject for Literal {
    fn poll_message(&mut self) -> Result<Option<Outgoing>, AgentError> {
        let (round, false) = self.next else { return Ok(None) };
        if round > self.rounds {
            return Ok(None);
        }
        let (n, modulus) = (self.data.n_records() as f64, 2.0 * self.penalty);
        let mut pull = vec![0.0; self.own.len()];
        for row in self.data.rows() {
            for (p, a) in pull.iter_mut().zip(row.numeric) {
                *p += row.label * row.scale * a / n;
            }
        }
        let own = &self.own;
        let point = |j: usize| (pull[j] - self.dual[j] + self.penalty * (own[j] + self.other[j])) / modulus;
        let point: Vec<f64> = (0..pull.len()).map(point).collect();
        let certified = Certified { point: point.clone(), residual: 0.0 };
        let release = self.gate.release(round, |_| Ok::<_, AgentError>(certified))?;
        self.own = point;
        self.released = release.value().to_vec();
        self.next.1 = true;
        Ok(Some(Outgoing {
            from: SiteIndex(0),
            turn: Turn::model(round),
            to: Recipients::Neighbours,
            content: Content::Model(release),
        }))
    }

    fn handle_message(&mut self, message: &Incoming) -> Result<(), AgentError> {
        self.other = message.vector.as_slice().to_vec();
        for ((dual, own), other) in self.dual.iter_mut().zip(&self.released).zip(&self.other) {
            *dual += self.penalty * (own - other);
        }
        self.next = (self.next.0 + 1, false);
        Ok(())
    }

    fn debits(&self) -> Vec<Debit> {
        self.gate.debits().to_vec()
    }

    fn noise_is_secure(&self) -> bool {
        self.gate.noise_is_secure()
    }
}

/// Noise made from the shipped noise, round by round.
struct Changed<F> {
    round: u32,
    fill: F,
}

impl<F: FnMut(u32, f64, &mut [i64]) + Send> NoiseSource for Changed<F> {
    fn fill(&mut self, scale: f64, out: &mut [i64]) -> Result<(), PrivacyError> {
        self.round += 1;
        (self.fill)(self.round, scale, out);
        Ok(())
    }
    fn description(&self) -> &'static str {
        SecureNoise.description()
    }
    fn is_secure(&self) -> bool {
        true
    }
}

fn changed(fill: impl FnMut(u32, f64, &mut [i64]) + Send + 'static) -> Box<dyn NoiseSource> {
    Box::new(Changed { round: 0, fill })
}

fn draw(scale: f64, out: &mut [i64]) {
    SecureNoise.fill(scale, out).unwrap();
}

/// The standard deviation, and not the variance, is multiplied by the decay of 0.9 from round to round.
pub(crate) struct WrongDecay;

impl Target for WrongDecay {
    fn noise(&self) -> Box<dyn NoiseSource> {
        changed(|round, scale, out| draw(scale * 0.9f64.powf(0.5 * f64::from(round - 1)), out))
    }
}

/// The noise of the first round is a quarter too small: that of one kind of sum where another is released.
pub(crate) struct SmallFirst;

impl Target for SmallFirst {
    fn noise(&self) -> Box<dyn NoiseSource> {
        changed(|round, scale, out| draw(if round == 1 { 0.75 * scale } else { scale }, out))
    }
}

/// A record is in the sum twice: its term is twice as long as the bound, as one that is not cut is.
pub(crate) struct Twice;

impl Target for Twice {
    fn subject(
        &self,
        scene: &Scene,
        calibration: &Calibration,
        rows: &Rows,
        ledger: Box<dyn Ledger>,
    ) -> Result<Box<dyn Subject>, AuditError> {
        // Noise on points is tied to the number of records, and agents refuse another.
        let noise = calibration.agents[scene.site].noise.as_ref();
        if noise.is_some_and(|noise| noise.premise().is_some()) {
            return Shipped.subject(scene, calibration, rows, ledger);
        }
        let mut counted = calibration.clone();
        counted.agents.iter_mut().for_each(|agent| agent.n_records *= 2);
        let (data, gate) =
            (self.encode(scene, &[rows, rows].concat()), self.gate(scene, calibration, ledger)?);
        Ok(assemble(scene, &counted, data, gate))
    }
}

/// Draws once and uses it in every round.
pub(crate) struct SameNoise;

impl Target for SameNoise {
    fn noise(&self) -> Box<dyn NoiseSource> {
        let mut kept: Option<(f64, Vec<i64>)> = None;
        changed(move |_, scale, out| {
            let (first, noise) = kept.get_or_insert_with(|| {
                let mut noise = vec![0; out.len()];
                draw(scale, &mut noise);
                (scale, noise)
            });
            out.iter_mut().zip(noise).for_each(|(o, n)| *o = (*n as f64 * scale / *first).round() as i64);
        })
    }
}

/// A generator that starts from the same state in every run.
pub(crate) struct SameStream;

impl Target for SameStream {
    fn noise(&self) -> Box<dyn NoiseSource> {
        let mut bits = Bits::new(3, 3);
        changed(move |_, scale, out| {
            out.fill_with(|| (scale * normal_quantile(bits.unit().max(1e-300))).round() as i64);
        })
    }
}

/// A ledger that does something else than it is asked for.
struct Wrapped<D> {
    inner: Box<dyn Ledger>,
    remembers: bool,
    debit: D,
}

impl<D: FnMut(&mut dyn Ledger, &Debit) -> Result<bool, PrivacyError> + Send> Ledger for Wrapped<D> {
    fn debit(&mut self, debit: &Debit) -> Result<(), PrivacyError> {
        (self.debit)(self.inner.as_mut(), debit).map(drop)
    }
    fn record(&mut self, debit: &Debit, payload: &Payload) -> Result<(), PrivacyError> {
        match self.inner.record(debit, payload) {
            Err(_) if !self.remembers => Ok(()),
            other => other,
        }
    }
    fn recorded(&self, run: &str, site: &str, round: u32) -> Result<Option<Payload>, PrivacyError> {
        if self.remembers { self.inner.recorded(run, site, round) } else { Ok(None) }
    }
    fn debits(&self) -> &[Debit] {
        if self.remembers { self.inner.debits() } else { &[] }
    }
}

/// Does not look up what it released before, and draws again.
pub(crate) struct Forgetful;

impl Target for Forgetful {
    fn ledger(&self, inner: Box<dyn Ledger>) -> Box<dyn Ledger> {
        let debit = |inner: &mut dyn Ledger, debit: &Debit| match inner.debit(debit) {
            Err(PrivacyError::AlreadyCharged { .. }) => Ok(false),
            other => other.map(|()| true),
        };
        Box::new(Wrapped { inner, remembers: false, debit })
    }
}

/// Releases without a charge.
pub(crate) struct NoCharge;

impl Target for NoCharge {
    fn ledger(&self, inner: Box<dyn Ledger>) -> Box<dyn Ledger> {
        Box::new(Wrapped { inner, remembers: false, debit: |_: &mut dyn Ledger, _: &Debit| Ok(false) })
    }
}

/// Noise by floating point.
pub(crate) enum FloatingPoint {
    /// On the grid, and it says what it is.
    Declared,
    /// Added to the point as it is.
    OffTheGrid,
    /// In single precision, and it says that it is exact.
    SinglePrecision,
}

struct Insecure;

impl NoiseSource for Insecure {
    fn fill(&mut self, scale: f64, out: &mut [i64]) -> Result<(), PrivacyError> {
        SecureNoise.fill(scale, out)
    }
    fn description(&self) -> &'static str {
        "floating point"
    }
    fn is_secure(&self) -> bool {
        false
    }
}

/// Adds the noise in floating point and does not round to the grid.
struct OffTheGrid(Box<dyn Mechanism>);

impl Mechanism for OffTheGrid {
    fn describe(&self, round: u32) -> Result<Event, PrivacyError> {
        self.0.describe(round)
    }
    fn draw(&self, round: u32, source: &mut dyn NoiseSource) -> Result<Drawn, PrivacyError> {
        self.0.draw(round, source)
    }
    fn seal(&self, round: u32, computed: Computed, drawn: Drawn) -> Result<Payload, PrivacyError> {
        let on_grid = self.0.seal(round, computed, drawn)?.to_vec();
        Ok(Payload::Plain(on_grid.iter().map(|v| v * (1.0 + f64::EPSILON)).collect()))
    }
    fn report(&self) -> Option<PrivacyReport> {
        self.0.report()
    }
    fn is_exact(&self) -> bool {
        true
    }
}

impl Target for FloatingPoint {
    fn noise(&self) -> Box<dyn NoiseSource> {
        match self {
            Self::Declared => Box::new(Insecure),
            Self::OffTheGrid => Box::new(SecureNoise),
            Self::SinglePrecision => changed(|_, scale, out| {
                draw(scale, out);
                out.iter_mut().for_each(|o| *o = (*o as f32) as i64);
            }),
        }
    }

    fn mechanism(&self, scene: &Scene, calibration: &Calibration) -> Result<Box<dyn Mechanism>, AuditError> {
        let shipped = Shipped.mechanism(scene, calibration)?;
        Ok(if matches!(self, Self::OffTheGrid) { Box::new(OffTheGrid(shipped)) } else { shipped })
    }
}

/// Stops, after the charge, when a bound that it computes from its records' own minimiser is too large.
pub(crate) struct Oracle;

struct Stopping {
    inner: Box<dyn Subject>,
    data: Dataset,
    tolerance: f64,
    last: Arc<Mutex<Vec<f64>>>,
}

impl Target for Oracle {
    fn subject(
        &self,
        scene: &Scene,
        calibration: &Calibration,
        rows: &Rows,
        ledger: Box<dyn Ledger>,
    ) -> Result<Box<dyn Subject>, AuditError> {
        let inner = Shipped.subject(scene, calibration, rows, ledger)?;
        let (data, tolerance) = (self.encode(scene, rows), calibration.agents[scene.site].tolerance);
        Ok(Box::new(Stopping { inner, data, tolerance, last: Arc::default() }))
    }
}

impl Subject for Stopping {
    fn poll_message(&mut self) -> Result<Option<Outgoing>, AgentError> {
        let heard = self.last.lock().unwrap().clone();
        let mut margins = 0.0f64;
        for row in self.data.rows() {
            let margin: f64 = row.numeric.iter().zip(&heard).map(|(a, x)| row.scale * a * x).sum();
            margins += margin.abs();
        }
        let residual = f64::EPSILON * margins / self.data.n_records() as f64;
        let tolerance = 1e-8 * self.tolerance;
        if residual > tolerance {
            return Err(AgentError::ToleranceNotReached { round: 2, residual, tolerance });
        }
        self.inner.poll_message()
    }

    fn handle_message(&mut self, message: &Incoming) -> Result<(), AgentError> {
        *self.last.lock().unwrap() = message.vector.as_slice().to_vec();
        self.inner.handle_message(message)
    }

    fn debits(&self) -> Vec<Debit> {
        self.inner.debits()
    }

    fn noise_is_secure(&self) -> bool {
        self.inner.noise_is_secure()
    }
}
