//! The theory calculator against numpy, against simulated runs, and in its monotonicities.

use padmm_core::graph::{Graph, GraphSpec, default_names};
use padmm_core::theory::{FreeParameters, StartDistance, StrongVerdict, Theory, TheoryError, TheoryInput};
use proptest::prelude::*;
use serde::Deserialize;

#[derive(Deserialize)]
struct Reference {
    cases: Vec<Case>,
    simulated: Vec<Run>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    agents: usize,
    edges: Vec<(usize, usize)>,
    strong_convexity: f64,
    smoothness: f64,
    penalty: f64,
    decay: f64,
    rounds: usize,
    features: usize,
    noise: Vec<f64>,
    model_norm: f64,
    split: f64,
    gradient_weight: f64,
    noise_weight: f64,
    slack: f64,
    needed: f64,
    available: f64,
    gain: Option<f64>,
    slack_limit: Option<f64>,
    contraction: Option<f64>,
    required_penalty: Option<f64>,
    dual_weight: Option<f64>,
    noise_factor: Option<f64>,
    paper: f64,
    corrected: f64,
    rederived: f64,
}

#[derive(Deserialize)]
struct Run {
    agents: usize,
    edges: Vec<(usize, usize)>,
    penalty: f64,
    decay: f64,
    rounds: usize,
    std: f64,
    model_norm: f64,
    mean: f64,
    error: f64,
}

fn reference() -> Reference {
    serde_json::from_str(include_str!("../../../testdata/theory/theory.json")).unwrap()
}

/// The paper's setting on Adult, over any graph.
fn adult(graph: Graph) -> TheoryInput {
    let n = graph.n_agents();
    TheoryInput {
        strong_convexity: 0.001 / n as f64,
        smoothness: 0.25 + 0.002 / n as f64,
        penalty: 6e-4,
        decay: 0.995,
        rounds: 50,
        n_features: 104,
        first_noise_vars: vec![0.15; n],
        start: StartDistance::from_zero(&graph, 5.0),
        free: FreeParameters::default(),
        graph,
    }
}

fn graph(text: &str, n: usize) -> Graph {
    text.parse::<GraphSpec>().unwrap().build(n, &[], 1).unwrap()
}

fn assert_near(found: f64, expected: f64, what: &str) {
    assert!((found - expected).abs() <= 1e-8 * expected.abs(), "{what}: {found} against {expected}");
}

#[test]
fn numpy_gives_the_same_numbers() {
    for case in reference().cases {
        let graph = Graph::from_edges(case.agents, case.edges, &default_names(case.agents)).unwrap();
        let theory = Theory::of(&TheoryInput {
            strong_convexity: case.strong_convexity,
            smoothness: case.smoothness,
            penalty: case.penalty,
            decay: case.decay,
            rounds: case.rounds,
            n_features: case.features,
            first_noise_vars: case.noise,
            start: StartDistance::from_zero(&graph, case.model_norm),
            free: FreeParameters {
                split: Some(case.split),
                gradient_weight: Some(case.gradient_weight),
                noise_weight: Some(case.noise_weight),
                slack: Some(case.slack),
            },
            graph,
        })
        .unwrap();
        let strong = &theory.strongly_convex;
        assert_near(strong.needed, case.needed, &case.name);
        assert_near(strong.available, case.available, &case.name);
        assert_near(theory.convex.paper.unwrap(), case.paper, &case.name);
        assert_near(theory.convex.corrected.unwrap(), case.corrected, &case.name);
        assert_near(theory.convex.rederived, case.rederived, &case.name);
        assert_eq!(strong.rate.is_some(), case.contraction.is_some(), "{}", case.name);
        if let Some(rate) = &strong.rate {
            assert_near(rate.gain, case.gain.unwrap(), "gain");
            assert_near(rate.slack_limit, case.slack_limit.unwrap(), "slack limit");
            assert_near(rate.contraction, case.contraction.unwrap(), "contraction");
            assert_near(rate.required_penalty, case.required_penalty.unwrap(), "required penalty");
            assert_near(rate.dual_weight, case.dual_weight.unwrap(), "dual weight");
            assert_near(rate.noise_factor, case.noise_factor.unwrap(), "noise factor");
        }
    }
}

/// Means of 4,000 simulated runs, five standard errors allowed: a false alarm about once in three million.
#[test]
fn the_rederived_bound_holds_in_simulation() {
    for run in reference().simulated {
        let graph = Graph::from_edges(run.agents, run.edges, &default_names(run.agents)).unwrap();
        let theory = Theory::of(&TheoryInput {
            strong_convexity: 0.5,
            smoothness: 1.0,
            penalty: run.penalty,
            decay: run.decay,
            rounds: run.rounds,
            n_features: 1,
            first_noise_vars: vec![run.std * run.std; run.agents],
            start: StartDistance::from_zero(&graph, run.model_norm),
            free: FreeParameters::default(),
            graph,
        })
        .unwrap();
        assert!(run.mean - 5.0 * run.error < theory.convex.rederived, "{}", theory.convex);
    }
}

#[test]
fn ring_of_five_on_adult() {
    let theory = Theory::of(&adult(graph("ring", 5))).unwrap();
    let strong = &theory.strongly_convex;
    // φ(L₊) = 2 + 2 cos(2πk/5): from (3 − √5)/2 to 4, so the ratio of squares is 56 + 24√5 = 109.67.
    assert_near(strong.needed, 56.0 + 24.0 * 5f64.sqrt(), "needed");
    assert!(strong.available - 1.0 < 0.01, "EQUATIONS §6: the gain is below 0.01");
    assert_eq!(strong.verdict, StrongVerdict::PreconditionFails);
    assert!(strong.shortfall > 109.0 && strong.rate.is_none());
    let text = theory.to_string();
    assert!(text.contains("says nothing here because") && text.contains("109.66"), "{text}");
}

/// An easy objective on a complete graph, for which all conditions can be met.
fn easy() -> TheoryInput {
    TheoryInput {
        strong_convexity: 0.02,
        smoothness: 0.05,
        decay: 0.1,
        penalty: 0.1,
        ..adult(graph("complete", 5))
    }
}

#[test]
fn every_verdict_is_reached_and_said() {
    let verdict = |input: &TheoryInput, needle: &str| {
        let theory = Theory::of(input).unwrap();
        let text = theory.to_string();
        assert!(text.contains(needle), "{text}");
        serde_json::to_string(&theory).unwrap();
        theory.strongly_convex.verdict
    };
    let lasso = TheoryInput { strong_convexity: 0.0, ..easy() };
    assert_eq!(verdict(&lasso, "not both"), StrongVerdict::NotStronglyConvexAndSmooth);
    let hinge = TheoryInput { smoothness: f64::INFINITY, ..easy() };
    assert_eq!(verdict(&hinge, "not both"), StrongVerdict::NotStronglyConvexAndSmooth);
    let pair = adult(graph("path", 2));
    assert_eq!(verdict(&pair, "bipartite"), StrongVerdict::SignlessSingular);
    let strict = TheoryInput { free: FreeParameters { split: Some(0.99), ..Default::default() }, ..easy() };
    assert_eq!(verdict(&strict, "constants that were given"), StrongVerdict::ConstantsFail);
    let loose = TheoryInput { free: FreeParameters { slack: Some(0.9), ..Default::default() }, ..easy() };
    assert_eq!(verdict(&loose, "constants that were given"), StrongVerdict::ConstantsFail);
    let slow = TheoryInput { decay: 0.999, ..easy() };
    assert_eq!(verdict(&slow, "decay below it"), StrongVerdict::DecayTooSlow);
    assert_eq!(verdict(&easy(), "for another penalty"), StrongVerdict::OtherPenalty);
    let rate = Theory::of(&easy()).unwrap().strongly_convex.rate.unwrap();
    assert!(rate.contraction < 1.0 && rate.noise_constant.is_some());
    let fixed = TheoryInput { penalty: rate.required_penalty, ..easy() };
    assert_eq!(verdict(&fixed, "all conditions hold"), StrongVerdict::Applies);
    let steady = TheoryInput { decay: 1.0, ..easy() };
    verdict(&steady, "says nothing without decay");
    assert!(Theory::of(&steady).unwrap().convex.rederived.is_finite());
}

/// The printed gain is not a property of the run: other units, same iterates, another gain.
#[test]
fn the_gain_depends_on_the_unit_of_the_objective() {
    let plain = easy();
    let scaled = TheoryInput {
        strong_convexity: plain.strong_convexity / 10.0,
        smoothness: plain.smoothness / 10.0,
        penalty: plain.penalty / 10.0,
        ..plain.clone()
    };
    let gain = |input: &TheoryInput| Theory::of(input).unwrap().strongly_convex.available - 1.0;
    assert_near(gain(&scaled), 10.0 * gain(&plain), "gain in other units");
}

#[test]
fn numbers_out_of_range() {
    let alone = TheoryInput { first_noise_vars: vec![0.1], ..adult(graph("ring", 1)) };
    assert_eq!(Theory::of(&alone).unwrap_err(), TheoryError::SingleAgent);
    let short = TheoryInput { first_noise_vars: vec![0.1], ..easy() };
    assert_eq!(Theory::of(&short).unwrap_err(), TheoryError::NoiseCount { n_agents: 5, n_vars: 1 });
    let free = |free| TheoryInput { free, ..easy() };
    for (input, needle) in [
        (TheoryInput { strong_convexity: -1.0, ..easy() }, "strong convexity is -1"),
        (TheoryInput { strong_convexity: 1.0, ..easy() }, "at most half the smoothness"),
        (TheoryInput { smoothness: f64::NAN, ..easy() }, "smoothness"),
        (TheoryInput { penalty: 0.0, ..easy() }, "penalty"),
        (TheoryInput { decay: 1.5, ..easy() }, "decay"),
        (TheoryInput { rounds: 0, ..easy() }, "rounds"),
        (TheoryInput { n_features: 0, ..easy() }, "features"),
        (TheoryInput { first_noise_vars: vec![-1.0; 5], ..easy() }, "noise variance"),
        (free(FreeParameters { split: Some(1.0), ..Default::default() }), "split"),
        (free(FreeParameters { gradient_weight: Some(1.0), ..Default::default() }), "gradient weight"),
        (free(FreeParameters { noise_weight: Some(f64::INFINITY), ..Default::default() }), "noise weight"),
        (free(FreeParameters { slack: Some(0.0), ..Default::default() }), "slack"),
    ] {
        let error = Theory::of(&input).unwrap_err().to_string();
        assert!(error.contains(needle), "{error}");
    }
    let mut far = easy();
    far.start.plain_squared = f64::INFINITY;
    assert!(Theory::of(&far).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn bounds_move_the_right_way(
        n in 3usize..9, rounds in 2usize..60, decay in 0.3..0.99f64, noise in 0.01..2.0f64,
    ) {
        let input = TheoryInput {
            rounds, decay, first_noise_vars: vec![noise; n], ..adult(graph("ring", n))
        };
        let base = Theory::of(&input).unwrap().convex;
        let louder = TheoryInput { first_noise_vars: vec![noise * 1.1; n], ..input.clone() };
        prop_assert!(Theory::of(&louder).unwrap().convex.rederived > base.rederived);
        let slower = TheoryInput { decay: decay + 0.005, ..input.clone() };
        prop_assert!(Theory::of(&slower).unwrap().convex.paper > base.paper);
        let farther = TheoryInput { start: StartDistance::from_zero(&input.graph, 6.0), ..input.clone() };
        prop_assert!(Theory::of(&farther).unwrap().convex.paper > base.paper);
        prop_assert!(base.corrected > base.paper);
        // On rings of five and more the rederived bound is even below the printed one.
        prop_assert!(n < 5 || base.rederived < base.paper.unwrap());
        // Twice the rounds: between half and the whole.
        let longer = Theory::of(&TheoryInput { rounds: 2 * rounds, ..input }).unwrap().convex;
        prop_assert!(longer.rederived < base.rederived * 1.5 && longer.paper < base.paper);
    }

    #[test]
    fn gains_move_the_right_way(convexity in 0.001..0.02f64, weight in 1.5..1e4f64) {
        let at = |gradient_weight: f64, strong_convexity: f64| {
            let free = FreeParameters { gradient_weight: Some(gradient_weight), ..Default::default() };
            Theory::of(&TheoryInput { strong_convexity, free, ..easy() }).unwrap().strongly_convex
        };
        prop_assert!(at(weight, convexity * 1.1).available > at(weight, convexity).available);
        if let Some(rate) = at(weight, convexity).rate {
            let better = at(weight * 2.0, convexity).rate.unwrap();
            prop_assert!(better.gain > rate.gain && better.gain < at(weight, convexity).available - 1.0);
            prop_assert!(rate.contraction < 1.0 && rate.contraction > at(weight, convexity).shortfall);
        }
    }

    /// The smallest weight that is reported is where constants start to exist.
    #[test]
    fn the_smallest_weight_is_the_smallest(convexity in 0.005..0.025f64) {
        let at = |gradient_weight: Option<f64>| {
            let free = FreeParameters { gradient_weight, ..Default::default() };
            Theory::of(&TheoryInput { strong_convexity: convexity, free, ..easy() }).unwrap().strongly_convex
        };
        if let Some(least) = at(None).smallest_gradient_weight {
            prop_assert!(at(Some(least * 1.001)).rate.is_some());
            prop_assert!(at(Some(least * 0.999)).rate.is_none());
        }
    }
}
