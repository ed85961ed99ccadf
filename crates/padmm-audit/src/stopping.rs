//! Whether a neighbour's message can make a site stop or continue, depending on its records.
//!
//! A site that stops is seen to stop. If it stops on one data set and continues with a neighbouring one, after the same messages, then a
//! single message tells the two apart with certainty, and no noise protects against that. The attacker here sends models of all sizes
//! that its grid can hold, looks for sizes at which the site changes its mind, and searches there: first by halving, down to one step
//! of the grid, and then around that place.

use std::collections::BTreeMap;

use padmm_core::algorithm::{AlgorithmKind, CONSENSUS_NEWTON, LINEARIZED, P_ADMM, PRIVATE_GRADIENT};
use padmm_core::calibration::Calibration;
use padmm_core::data::FeatureSpace;
use padmm_core::graph::{Graph, default_names};
use padmm_core::loss::Loss;
use padmm_core::message::{Incoming, SiteIndex, Turn};
use padmm_core::plan::PlanDraft;
use padmm_core::regularizer::Regularizer;
use padmm_privacy::{Debit, Ledger, Payload, PrivacyError};
use rayon::prelude::*;

use crate::bits::Bits;
use crate::canary::schedule;
use crate::error::AuditError;
use crate::normal::normal_quantile;
use crate::target::{SITE, Scene, Target};
use crate::verdict::Check;

/// Numbers of a record; like the site's records they are few, so that one record weighs much and many messages can be tried.
const NUMBERS: usize = 2;
/// Records of the attacked site.
const RECORDS: usize = 20;
/// Pairs of neighbouring data sets for each plan.
const PAIRS: u64 = 4;
/// Sizes that are tried before searching closer, spread evenly on a logarithmic scale.
const SIZES: usize = 40;
/// Messages that are tried around a size at which the site changes its mind.
const CLOSE: usize = 120;
/// Smallest and largest size of a message.
const RANGE: (f64, f64) = (1e-3, 1e15);

/// Sends hostile messages to pairs of sites that differ in one record.
pub fn stopping(target: &dyn Target, seed: u64) -> Result<Check, AuditError> {
    let cases: Vec<(usize, u64)> = (0..SCENES.len()).flat_map(|s| (0..PAIRS).map(move |p| (s, p))).collect();
    let search = |&(which, pair): &(usize, u64)| -> Result<Option<String>, AuditError> {
        let scene = scene(which)?;
        let calibration = target.calibration(&scene)?;
        let bits = Bits::new(seed, 1000 * which as u64 + pair);
        Pair::new(target, &scene, &calibration, bits)?.search()
    };
    let found: Vec<Option<String>> = cases.par_iter().map(search).collect::<Result<_, _>>()?;
    Ok(Check { findings: found.into_iter().flatten().collect() })
}

/// The plans under which sites are tried: their certificates are made in different ways.
const SCENES: [(AlgorithmKind, Loss, Regularizer); 6] = [
    (P_ADMM, Loss::Logistic, Regularizer::L2 { strength: 1e-3 }),
    (P_ADMM, Loss::Hinge, Regularizer::None),
    (P_ADMM, Loss::Logistic, Regularizer::L1 { strength: 1e-3 }),
    (LINEARIZED, Loss::Logistic, Regularizer::None),
    (PRIVATE_GRADIENT, Loss::Logistic, Regularizer::L2 { strength: 1e-3 }),
    (CONSENSUS_NEWTON, Loss::Logistic, Regularizer::L2 { strength: 1e-3 }),
];

fn scene(which: usize) -> Result<Scene, AuditError> {
    let (algorithm, loss, regularizer) = SCENES[which];
    let plan = PlanDraft { algorithm, loss, regularizer, rounds: 2, epsilon: 1.0, ..PlanDraft::default() };
    Ok(Scene {
        plan: plan.check()?,
        graph: Graph::from_edges(2, [(0, 1)], &default_names(2)).expect("two sites and an edge are a graph"),
        space: numbers_and_ones(),
        n_records: vec![RECORDS; 2],
        norm_bound: 1.0,
        site: 0,
    })
}

/// Numbers and an intercept, which consensus Newton asks for.
fn numbers_and_ones() -> FeatureSpace {
    let mut space = FeatureSpace::numeric(NUMBERS);
    space.intercept = Some(NUMBERS);
    space.names.push("ones".to_owned());
    space
}

/// What the neighbour of a site sees, and what the site paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Behaviour {
    accepts: bool,
    continues: bool,
    charges: usize,
}

/// Two sites that differ in one record and have said the same so far.
struct Pair<'a> {
    target: &'a dyn Target,
    scene: &'a Scene,
    calibration: &'a Calibration,
    rows: [Vec<(Vec<f64>, f64)>; 2],
    /// What both have released in the first round.
    released: Payload,
    /// The exponent of the neighbour's planned grid.
    exponent: i32,
    bits: Bits,
}

impl<'a> Pair<'a> {
    fn new(
        target: &'a dyn Target,
        scene: &'a Scene,
        calibration: &'a Calibration,
        mut bits: Bits,
    ) -> Result<Self, AuditError> {
        let row = |bits: &mut Bits| {
            let mut features: Vec<f64> = (0..NUMBERS).map(|_| 1.4 * bits.unit() - 0.7).collect();
            features.push(1.0);
            (features, bits.label())
        };
        let mut first: Vec<(Vec<f64>, f64)> = (0..RECORDS).map(|_| row(&mut bits)).collect();
        (first[1].1, first[2].1) = (1.0, -1.0);
        let mut second = first.clone();
        let other = row(&mut bits);
        second[0] = (other.0, -first[0].1);
        let schedule = schedule(scene, calibration)?;
        let first_round = schedule.noise_std(1).zip(schedule.grid_exponent(1));
        let (std, exponent) =
            first_round.ok_or_else(|| AuditError::Protocol("has no grid in its plan".to_owned()))?;
        let scale = libm::scalbn(std, -exponent);
        let noise = |bits: &mut Bits| (scale * normal_quantile(bits.unit().max(1e-12))).round() as i64;
        let values = (0..schedule.n_coordinates(1)).map(|_| noise(&mut bits)).collect();
        let released = Payload::Grid { exponent, values };
        Ok(Pair { target, scene, calibration, rows: [first, second], released, exponent, bits })
    }

    /// The first message found to which the two sites behave differently.
    fn search(mut self) -> Result<Option<String>, AuditError> {
        for _ in 0..2 {
            let direction = self.direction();
            let largest = (libm::scalbn(1.0, 53 + self.exponent) * 0.999).min(RANGE.1);
            let steps = (largest / RANGE.0).ln() / SIZES as f64;
            let size = |i: usize, bits: &mut Bits| RANGE.0 * ((i as f64 + bits.unit()) * steps).exp();
            let sizes: Vec<f64> = (0..SIZES).map(|i| size(i, &mut self.bits)).collect();
            let mut before: Option<(f64, Behaviour)> = None;
            for size in sizes {
                let here = match self.at(&direction, size)? {
                    Ok(behaviour) => behaviour,
                    Err(found) => return Ok(Some(found)),
                };
                if let Some((smaller, was)) = before.filter(|(_, was)| *was != here)
                    && let Some(found) = self.close_in(&direction, (smaller, was), size)?
                {
                    return Ok(Some(found));
                }
                before = Some((size, here));
            }
        }
        Ok(None)
    }

    /// A direction for all coordinates of a message, each as likely as any other.
    fn direction(&mut self) -> Vec<f64> {
        let n = self.released.to_vec().len();
        let deviates: Vec<f64> =
            (0..n).map(|_| normal_quantile(self.bits.unit().max(f64::MIN_POSITIVE))).collect();
        let length = deviates.iter().map(|d| d * d).sum::<f64>().sqrt();
        deviates.iter().map(|d| d / length).collect()
    }

    /// Between two sizes at which the first site behaves differently there is one where it changes its mind.
    fn close_in(
        &mut self,
        direction: &[f64],
        (mut low, was): (f64, Behaviour),
        mut high: f64,
    ) -> Result<Option<String>, AuditError> {
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            match self.at(direction, middle)? {
                Ok(here) if here == was => low = middle,
                Ok(_) => high = middle,
                Err(found) => return Ok(Some(found)),
            }
        }
        for _ in 0..CLOSE {
            // Relative distances from 10⁻¹⁵ to 10⁻¹, on either side.
            let distance = 10f64.powf(-1.0 - 14.0 * self.bits.unit()) * self.bits.label();
            if let Err(found) = self.at(direction, high * (1.0 + distance))? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// How both sites behave after a message of this size, or how they differ.
    fn at(&self, direction: &[f64], size: f64) -> Result<Result<Behaviour, String>, AuditError> {
        let steps = |d: &f64| libm::round(libm::scalbn(size * d, -self.exponent)) as i64;
        let message =
            Payload::Grid { exponent: self.exponent, values: direction.iter().map(steps).collect() };
        let [first, second] = [self.behaviour(0, &message)?, self.behaviour(1, &message)?];
        if first == second {
            return Ok(Ok(first));
        }
        let settings = self.scene.plan.settings();
        Ok(Err(format!(
            "{} with the loss {}: after a neighbour's model of size {size:e} a site {} and, with one other record, {} ({message:?})",
            settings.algorithm.title(),
            settings.loss,
            first.words(),
            second.words(),
        )))
    }

    fn behaviour(&self, which: usize, message: &Payload) -> Result<Behaviour, AuditError> {
        let ledger = Box::new(Scripted::new(self.scene, self.calibration, &self.released)?);
        let mut subject = self.target.subject(self.scene, self.calibration, &self.rows[which], ledger)?;
        subject.poll_message()?;
        let accepts = match Incoming::decode(SiteIndex(1), Turn::model(1), message) {
            Ok(incoming) => subject.handle_message(&incoming).is_ok(),
            Err(_) => false,
        };
        let continues = subject.poll_message().is_ok_and(|message| message.is_some());
        Ok(Behaviour { accepts, continues, charges: subject.debits().len() })
    }
}

impl Behaviour {
    fn words(self) -> String {
        let takes = if self.accepts { "accepts it" } else { "refuses it" };
        let goes = if self.continues { "continues" } else { "stops" };
        format!("{takes}, {goes} and is charged for {} rounds", self.charges)
    }
}

/// A ledger that holds the first round already, so that two sites with different records have said the same.
struct Scripted {
    debits: Vec<Debit>,
    payloads: BTreeMap<u32, Payload>,
}

impl Scripted {
    fn new(scene: &Scene, calibration: &Calibration, first: &Payload) -> Result<Self, AuditError> {
        let event = schedule(scene, calibration)?.event(1);
        let event = event.ok_or_else(|| AuditError::Protocol("charges nothing for a round".to_owned()))?;
        let debit = Debit { run: SITE.to_owned(), site: SITE.to_owned(), round: 1, event };
        Ok(Self { debits: vec![debit], payloads: BTreeMap::from([(1, first.clone())]) })
    }
}

impl Ledger for Scripted {
    fn debit(&mut self, debit: &Debit) -> Result<(), PrivacyError> {
        self.debits.push(debit.clone());
        Ok(())
    }

    fn record(&mut self, debit: &Debit, payload: &Payload) -> Result<(), PrivacyError> {
        self.payloads.insert(debit.round, payload.clone());
        Ok(())
    }

    fn recorded(&self, _run: &str, _site: &str, round: u32) -> Result<Option<Payload>, PrivacyError> {
        Ok(self.payloads.get(&round).cloned())
    }

    fn debits(&self) -> &[Debit] {
        &self.debits
    }
}
