//! Runs of the methods on made-up records, with noise of the law that a real run has.

use rayon::prelude::*;

use super::population::{Maker, Normal, worth};
use super::{AdviceError, Question, Signal};
use crate::algorithm::newton::Rehearsal;
use crate::algorithm::{CONSENSUS_NEWTON, private_gradient};
use crate::calibration::{Calibration, NetworkFacts};
use crate::data::{Dataset, Row};
use crate::objective::{Objective, ObjectiveBuffers, Part};
use crate::plan::Plan;
use crate::regularizer::{Regularizer, RegularizerTerm};
use crate::solver::Solver;
use crate::step;

/// Made-up records, at most: sums over more hardly change.
const MOST_RECORDS: usize = 4000;
/// Where a pooled problem counts as solved.
const SOLVED: f64 = 1e-7;

/// Made-up or public records, those to judge by, and the best that can be learned from the first.
pub(super) struct Population {
    pub train: Dataset,
    pub held_out: Dataset,
    /// What a site's own records are taken from.
    pub own: Dataset,
    pub optimum: Vec<f64>,
    /// The pooled objective at `optimum`.
    pub objective: f64,
    penalty: RegularizerTerm,
}

/// What one run came to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    pub loss: f64,
    /// `F(x)/F(x*) − 1` of the pooled objective `F`.
    pub excess: f64,
    /// On records that were set aside.
    pub auc: f64,
    pub accuracy: f64,
}

impl Population {
    /// The population with this number, of `question`.
    pub(super) fn new(question: &Question<'_>, number: u64) -> Self {
        let n: usize = question.network.n_records.iter().sum();
        let n_train = n.clamp(20, MOST_RECORDS);
        let (train, held_out, own) = match question.signal {
            Signal::Assumed { auc, positive } => {
                let network = question.network;
                let mut maker = Maker::new(network.space, network.norm_bound, auc, positive, 1 + number);
                (maker.records(n_train), maker.records(MOST_RECORDS), maker.records(MOST_RECORDS))
            }
            Signal::Table(table) => {
                // Every third record to learn from, to judge by, and for single sites; another choice for another number.
                let third = |k: usize| {
                    let mut part = table.empty_like();
                    let rows = table.rows().skip((k + number as usize) % 3).step_by(3).take(MOST_RECORDS);
                    rows.for_each(|row| part.push_row(row));
                    part
                };
                (third(0), third(1), third(2))
            }
        };
        let settings = question.plan.settings();
        let share = 1.0 / question.network.n_records.len() as f64;
        let penalty = RegularizerTerm::new(&settings.regularizer, question.network.space, share);
        let mut population = Self { train, held_out, own, optimum: vec![], objective: 0.0, penalty };
        population.optimum = population.solve(question, &population.train, &[], 0.0);
        population.objective = population.value(question, &population.optimum);
        population
    }

    /// `argmin` of the mean loss over `records`, the regulariser and these terms.
    fn solve(&self, question: &Question<'_>, records: &Dataset, linear: &[f64], quadratic: f64) -> Vec<f64> {
        let parts = [Part::mean(records)];
        // Without any curvature there may be no minimiser.
        let ridge = if self.penalty.strong_convexity() > 0.0 { quadratic } else { quadratic + 1e-9 };
        let objective = Objective::new(&parts, question.plan.settings().loss, &self.penalty, linear, ridge);
        Solver::new().solve(&objective, &vec![0.0; records.n_features()], SOLVED).point
    }

    /// The pooled objective.
    fn value(&self, question: &Question<'_>, model: &[f64]) -> f64 {
        let parts = [Part::mean(&self.train)];
        let objective = Objective::new(&parts, question.plan.settings().loss, &self.penalty, &[], 0.0);
        objective.value(model, &mut ObjectiveBuffers::default())
    }

    /// What a model is worth here.
    pub(super) fn judge(&self, question: &Question<'_>, model: &[f64]) -> Outcome {
        let loss = question.plan.settings().loss;
        let (_, auc, accuracy) = worth(&self.held_out, loss, model);
        let (train_loss, ..) = worth(&self.train, loss, model);
        Outcome {
            loss: train_loss,
            excess: self.value(question, model) / self.objective - 1.0,
            auc,
            accuracy,
        }
    }

    /// A model of consensus Newton, or of private gradients; the run number decides its noise.
    pub(super) fn at_one_point(
        &self,
        question: &Question<'_>,
        plan: &Plan,
        noise_factor: f64,
        mu: f64,
        run: u64,
    ) -> Vec<f64> {
        let space = question.network.space;
        let rehearsal = Rehearsal {
            records: &self.train,
            space,
            loss: question.plan.settings().loss,
            regularizer: &self.penalty,
            noise_factor,
            mu,
            rounds: Some(plan.settings().rounds),
        };
        let mut normal = Normal::new(0x6e65_7774 + run);
        if is_newton(plan) {
            rehearsal.run(&mut || normal.draw())
        } else {
            private_gradient::rehearse(&rehearsal, &mut || normal.draw())
        }
    }

    /// What a site of `n` records learns alone, and with the joint model: areas under the ROC curve. How far each model is drawn, to zero
    /// or to the joint one, is decided on records of its own, as a site does by cross-validation.
    pub(super) fn of_a_site(&self, question: &Question<'_>, n: usize, joint: &[f64]) -> (f64, f64) {
        const PULLS: [f64; 4] = [1e-4, 1e-3, 1e-2, 1e-1];
        let settings = question.plan.settings();
        let take = |rows: &mut dyn Iterator<Item = Row<'_>>| {
            let mut part = self.own.empty_like();
            rows.for_each(|row| part.push_row(row));
            part
        };
        let own = take(&mut self.own.rows().take(n));
        let half = self.held_out.n_records() / 2;
        let judge = take(&mut self.held_out.rows().take(half));
        let test = take(&mut self.held_out.rows().skip(half));
        let parts = [Part::mean(&own)];
        let zero = vec![0.0; joint.len()];
        let alone = PULLS.map(|pull| {
            let ridge =
                RegularizerTerm::new(&Regularizer::L2 { strength: pull }, question.network.space, 1.0);
            let objective = Objective::new(&parts, settings.loss, &ridge, &[], 1e-9);
            Solver::new().solve(&objective, &zero, SOLVED).point
        });
        let none = RegularizerTerm::none();
        let drawn = PULLS.map(|pull| {
            let linear: Vec<f64> = joint.iter().map(|x| -2.0 * pull * x).collect();
            let objective = Objective::new(&parts, settings.loss, &none, &linear, 2.0 * pull);
            Solver::new().solve(&objective, joint, SOLVED).point
        });
        let best = |models: &[&[f64]]| {
            let loss = |model: &&&[f64]| worth(&judge, settings.loss, model).0;
            let best = models.iter().min_by(|a, b| loss(a).total_cmp(&loss(b))).expect("there are models");
            worth(&test, settings.loss, best).1
        };
        let alone: Vec<&[f64]> = alone.iter().map(Vec::as_slice).collect();
        let combined: Vec<&[f64]> =
            alone.iter().copied().chain(drawn.iter().map(Vec::as_slice)).chain([joint]).collect();
        (best(&alone), best(&combined))
    }
}

/// A model of P-ADMM: every site has the whole population's mean loss with its own weight, noise and neighbours, and the model is the
/// network's average, smoothed as a real one is. `run` decides the noise.
pub(super) fn admm(
    population: &Population,
    plan: &Plan,
    network: &NetworkFacts<'_>,
    run: u64,
) -> Result<Vec<f64>, AdviceError> {
    let calibration = Calibration::derive(plan, network)?;
    let (settings, p) = (plan.settings(), network.space.n_features());
    let weights = settings.weights.factors(network.n_records);
    let penalty = calibration.penalty;
    let mut normal = Normal::new(0x6164_6d6d + run);
    struct Site {
        solver: Solver,
        point: Vec<f64>,
        release: Vec<f64>,
        dual: Vec<f64>,
    }
    let site = |_: &usize| Site {
        solver: Solver::new(),
        point: vec![0.0; p],
        release: vec![0.0; p],
        dual: vec![0.0; p],
    };
    let mut sites: Vec<Site> = network.n_records.iter().map(site).collect();
    let (mut smoothed, mut total) = (vec![0.0; p], 0.0);
    for round in 1..=settings.rounds {
        let deviations: Vec<f64> = calibration
            .agents
            .iter()
            .map(|agent| agent.noise.as_ref().and_then(|n| n.noise_std(round)).unwrap_or(0.0))
            .collect();
        let releases: Vec<Vec<f64>> = sites.iter().map(|s| s.release.clone()).collect();
        sites.par_iter_mut().enumerate().for_each(|(i, site)| {
            let quadratic = step::primal_quadratic(penalty, network.graph.degree(i));
            let mut linear = site.dual.clone();
            for &j in network.graph.neighbours(i) {
                for ((l, own), other) in linear.iter_mut().zip(&releases[i]).zip(&releases[j]) {
                    *l -= penalty * (own + other);
                }
            }
            let n = population.train.n_records() as f64;
            let parts = [Part { data: &population.train, weight: weights[i] / n }];
            let objective = Objective::new(&parts, settings.loss, &population.penalty, &linear, quadratic);
            // Far below the noise is near enough.
            let tolerance = 0.02 * quadratic * deviations[i];
            site.point = site.solver.solve(&objective, &site.point, tolerance).point;
        });
        for (site, deviation) in sites.iter_mut().zip(&deviations) {
            site.release = site.point.iter().map(|x| x + deviation * normal.draw()).collect();
        }
        let releases: Vec<Vec<f64>> = sites.iter().map(|s| s.release.clone()).collect();
        for (i, site) in sites.iter_mut().enumerate() {
            for &j in network.graph.neighbours(i) {
                for ((d, own), other) in site.dual.iter_mut().zip(&releases[i]).zip(&releases[j]) {
                    *d += penalty * (own - other);
                }
            }
        }
        let weight = step::smoothing_weight(round);
        total += weight;
        for release in &releases {
            let factor = weight / releases.len() as f64;
            smoothed.iter_mut().zip(release).for_each(|(s, x)| *s += factor * x);
        }
    }
    smoothed.iter_mut().for_each(|s| *s /= total);
    Ok(smoothed)
}

/// Whether `plan` is for consensus Newton.
pub(super) fn is_newton(plan: &Plan) -> bool {
    plan.settings().algorithm == CONSENSUS_NEWTON
}
