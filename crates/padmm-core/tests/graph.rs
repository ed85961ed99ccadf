//! Graphs against closed forms, their properties, and every way to get one wrong.

#![allow(clippy::float_cmp, reason = "what is meant is equality to the bit")]

use std::f64::consts::PI;

use padmm_core::graph::{
    Graph, GraphError, GraphSpec, Spectrum, default_names, gossip_contraction, gossip_rounds,
    metropolis_self_weight, metropolis_weight,
};
use proptest::prelude::*;

fn build(text: &str, n_agents: usize) -> Result<Graph, GraphError> {
    text.parse::<GraphSpec>()?.build(n_agents, &[], 42)
}

fn graph(text: &str, n_agents: usize) -> Graph {
    build(text, n_agents).unwrap_or_else(|e| panic!("{text} over {n_agents}: {e}"))
}

fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(|n| (*n).to_owned()).collect()
}

fn assert_close(found: &[f64], mut expected: Vec<f64>, what: &str) {
    expected.sort_by(f64::total_cmp);
    assert_eq!(found.len(), expected.len(), "{what}");
    for (f, e) in found.iter().zip(&expected) {
        assert!((f - e).abs() < 1e-9, "{what}: {found:?} against {expected:?}");
    }
}

// --- closed forms ---------------------------------------------------------------------------------------

#[test]
fn ring_spectrum() {
    for n in [3, 4, 5, 8, 17] {
        let spectrum = Spectrum::of(&graph("ring", n));
        let wave = |k: usize| 2.0 * (2.0 * PI * k as f64 / n as f64).cos();
        assert_close(&spectrum.signed, (0..n).map(|k| 2.0 - wave(k)).collect(), "signed ring");
        assert_close(&spectrum.signless, (0..n).map(|k| 2.0 + wave(k)).collect(), "signless ring");
        assert_eq!(spectrum.bipartite, n % 2 == 0);
    }
}

#[test]
fn path_spectrum() {
    for n in [2, 3, 6, 11] {
        let spectrum = Spectrum::of(&graph("path", n));
        let closed = |k: usize| 2.0 - 2.0 * (PI * k as f64 / n as f64).cos();
        assert_close(&spectrum.signed, (0..n).map(closed).collect(), "signed path");
        // A path is bipartite, so both Laplacians have the same eigenvalues.
        assert_close(&spectrum.signless, (0..n).map(closed).collect(), "signless path");
    }
}

#[test]
fn star_spectrum() {
    let n = 7;
    let spectrum = Spectrum::of(&graph("star", n));
    let mut closed = vec![1.0; n - 2];
    closed.extend([0.0, n as f64]);
    assert_close(&spectrum.signed, closed.clone(), "signed star");
    assert_close(&spectrum.signless, closed, "signless star");
    assert!((spectrum.signless_min - 1.0).abs() < 1e-12);
    assert_eq!((spectrum.degree_max, spectrum.degree_min), (6.0, 1.0));
}

#[test]
fn complete_spectrum() {
    let n = 6;
    let spectrum = Spectrum::of(&graph("complete", n));
    let mut signed = vec![n as f64; n - 1];
    signed.push(0.0);
    let mut signless = vec![n as f64 - 2.0; n - 1];
    signless.push(2.0 * (n as f64 - 1.0));
    assert_close(&spectrum.signed, signed, "signed complete");
    assert_close(&spectrum.signless, signless, "signless complete");
    assert!((spectrum.root_min - 3f64.sqrt()).abs() < 1e-12, "Q is the root of half the Laplacian");
    assert!((spectrum.signless_condition_squared() - (10.0f64 / 4.0).powi(2)).abs() < 1e-9);
}

#[test]
fn torus_spectrum() {
    let (rows, columns) = (3, 5);
    let spectrum = Spectrum::of(&graph("torus:3x5", 15));
    let wave = |k: usize, n: usize| 2.0 * (2.0 * PI * k as f64 / n as f64).cos();
    let waves: Vec<f64> =
        (0..rows).flat_map(|r| (0..columns).map(move |c| wave(r, rows) + wave(c, columns))).collect();
    assert_close(&spectrum.signed, waves.iter().map(|w| 4.0 - w).collect(), "signed torus");
    assert_close(&spectrum.signless, waves.iter().map(|w| 4.0 + w).collect(), "signless torus");
}

#[test]
fn grid_and_torus_shapes() {
    assert_eq!(graph("grid", 12), graph("grid:3x4", 12));
    assert_eq!(graph("grid:3x4", 12).n_edges(), 3 * 3 + 2 * 4);
    assert_eq!(graph("grid", 7), graph("path", 7), "a prime number of agents fits one row");
    assert_eq!(graph("torus", 7), graph("ring", 7));
    assert_eq!(graph("torus:2x3", 6).n_edges(), 2 * 3 + 3, "a side of two is not joined twice");
}

#[test]
fn single_agents_and_pairs() {
    for text in ["ring", "path", "star", "complete", "grid", "torus", "erdos-renyi:0.5", "geometric:0.1"] {
        let alone = graph(text, 1);
        assert_eq!((alone.n_agents(), alone.n_edges(), alone.max_degree()), (1, 0, 0), "{text}");
        if text != "erdos-renyi:0.5" && text != "geometric:0.1" {
            assert_eq!(graph(text, 2).n_edges(), 1, "{text}");
        }
    }
    let spectrum = Spectrum::of(&graph("ring", 1));
    assert_eq!((spectrum.signless_max, spectrum.algebraic_connectivity), (0.0, 0.0));
    assert_eq!(spectrum.signless_condition_squared(), 1.0);
    assert_eq!(gossip_contraction(&graph("ring", 1)), 0.0);
}

#[test]
fn edges_and_neighbours_tell_the_same_story() {
    let g = graph("star", 4);
    assert_eq!(g.edges().collect::<Vec<_>>(), [(0, 1), (0, 2), (0, 3)]);
    assert_eq!(g.neighbours(0), [1, 2, 3]);
    assert_eq!(g.degrees(), [3, 1, 1, 1]);
    assert!(g.has_edge(2, 0) && !g.has_edge(1, 2) && !g.has_edge(9, 0));
}

// --- gossip ---------------------------------------------------------------------------------------------

#[test]
fn gossip_on_known_graphs() {
    assert_eq!(gossip_contraction(&graph("complete", 5)), 0.0, "one round averages exactly");
    // On a ring all weights are 1/3, so the eigenvalues are (1 + 2 cos(2πk/n)) / 3.
    let expected = (1.0 + 2.0 * (2.0 * PI / 9.0).cos()) / 3.0;
    assert!((gossip_contraction(&graph("ring", 9)) - expected).abs() < 1e-12);
}

#[test]
fn gossip_on_a_large_ring() {
    let n = 500;
    let expected = (1.0 + 2.0 * (2.0 * PI / n as f64).cos()) / 3.0;
    let found = gossip_contraction(&graph("ring", n));
    assert!(((1.0 - found) / (1.0 - expected) - 1.0).abs() < 1e-6, "{found} against {expected}");
}

#[test]
fn gossip_weights_sum_to_one() {
    let g = graph("star", 5);
    for i in 0..5 {
        let others: f64 = (0..5).map(|j| metropolis_weight(&g, i, j)).sum();
        assert!((others + metropolis_self_weight(&g, i) - 1.0).abs() < 1e-15);
        assert!(metropolis_self_weight(&g, i) > 0.0);
    }
    assert_eq!(metropolis_weight(&g, 1, 2), 0.0);
    assert_eq!(metropolis_weight(&g, 0, 2), 0.2);
}

#[test]
fn rounds_of_gossip() {
    assert_eq!(gossip_rounds(0.5, 0.125, 100), 3);
    assert_eq!(gossip_rounds(0.5, 0.12, 100), 4);
    assert_eq!(gossip_rounds(0.5, 0.12, 2), 2);
    assert_eq!(gossip_rounds(0.0, 1e-9, 100), 1);
    assert_eq!(gossip_rounds(0.9, 1.0, 100), 0);
    assert_eq!(gossip_rounds(1.0, 0.1, 100), 100);
    assert_eq!(gossip_rounds(0.5, 0.0, 100), 100);
    assert_eq!(gossip_rounds(f64::NAN, 0.5, 100), 100);
}

// --- random families ------------------------------------------------------------------------------------

#[test]
fn a_seed_gives_the_same_graph_for_ever() {
    let g = "erdos-renyi:0.4".parse::<GraphSpec>().unwrap().build(8, &[], 2024).unwrap();
    assert_eq!(g.edges().collect::<Vec<_>>(), PINNED_ERDOS_RENYI);
    let g = "regular:3".parse::<GraphSpec>().unwrap().build(8, &[], 2024).unwrap();
    assert_eq!(g.edges().collect::<Vec<_>>(), PINNED_REGULAR);
}

const PINNED_ERDOS_RENYI: [(usize, usize); 14] = [
    (0, 1),
    (0, 2),
    (0, 4),
    (0, 5),
    (0, 6),
    (0, 7),
    (2, 4),
    (2, 5),
    (2, 6),
    (3, 5),
    (4, 5),
    (4, 6),
    (5, 6),
    (6, 7),
];
const PINNED_REGULAR: [(usize, usize); 12] =
    [(0, 4), (0, 5), (0, 7), (1, 2), (1, 3), (1, 6), (2, 3), (2, 4), (3, 6), (4, 7), (5, 6), (5, 7)];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_families_are_connected_and_simple(n in 4usize..40, seed: u64, pick in 0usize..4) {
        let text = ["erdos-renyi:0.6", "geometric:0.8", "small-world:2,0.3", "regular:2"][pick];
        let spec: GraphSpec = text.parse().unwrap();
        let g = spec.build(n, &[], seed).unwrap();
        prop_assert_eq!(&g, &spec.build(n, &[], seed).unwrap());
        prop_assert!(spec.is_random());
        // Connected by construction; the Laplacian says so independently.
        prop_assert!(Spectrum::of(&g).algebraic_connectivity > 1e-9);
        for (i, j) in g.edges() {
            prop_assert!(i < j && g.has_edge(j, i));
        }
    }

    #[test]
    fn regular_graphs_are_regular(n in 3usize..30, degree in 2usize..8, seed: u64) {
        prop_assume!(degree < n && n * degree % 2 == 0);
        let g = GraphSpec::Regular { degree }.build(n, &[], seed).unwrap();
        prop_assert!((0..n).all(|i| g.degree(i) == degree));
    }

    #[test]
    fn small_worlds_keep_their_edges(n in 5usize..30, half in 1usize..3, rewiring in 0.0..=1.0f64, seed: u64) {
        prop_assume!(2 * half < n);
        let g = GraphSpec::SmallWorld { degree: 2 * half, rewiring }.build(n, &[], seed).unwrap();
        prop_assert_eq!(g.n_edges(), n * half);
    }

    #[test]
    fn traces_and_renaming(n in 3usize..16, seed: u64, shift in 1usize..15) {
        let g = GraphSpec::ErdosRenyi { probability: 0.5 }.build(n, &[], seed).unwrap();
        let s = Spectrum::of(&g);
        let total = 2.0 * g.n_edges() as f64;
        prop_assert!((s.signed.iter().sum::<f64>() - total).abs() < 1e-9);
        prop_assert!((s.signless.iter().sum::<f64>() - total).abs() < 1e-9);
        // The sum of squares is Σ d² + Σ d for both.
        let squares: f64 = g.degrees().iter().map(|&d| (d * d + d) as f64).sum();
        prop_assert!((s.signed.iter().map(|v| v * v).sum::<f64>() - squares).abs() < 1e-8);
        prop_assert!((s.signless.iter().map(|v| v * v).sum::<f64>() - squares).abs() < 1e-8);

        let renamed = g.edges().map(|(i, j)| ((i + shift) % n, (j + shift) % n));
        let renamed = Graph::from_edges(n, renamed, &default_names(n)).unwrap();
        let t = Spectrum::of(&renamed);
        prop_assert!((s.algebraic_connectivity - t.algebraic_connectivity).abs() < 1e-9);
        prop_assert!((s.signless_min - t.signless_min).abs() < 1e-9);
        prop_assert_eq!(s.bipartite, t.bipartite);
        prop_assert!((gossip_contraction(&g) - gossip_contraction(&renamed)).abs() < 1e-9);
    }

    #[test]
    fn text_round_trips(k in 1usize..9, p in 0.001..1.0f64) {
        for spec in [
            GraphSpec::Ring, GraphSpec::Path, GraphSpec::Star, GraphSpec::Complete,
            GraphSpec::Grid { shape: None }, GraphSpec::Grid { shape: Some((k, 3)) },
            GraphSpec::Torus { shape: None }, GraphSpec::Torus { shape: Some((2, k)) },
            GraphSpec::ErdosRenyi { probability: p }, GraphSpec::Geometric { radius: p },
            GraphSpec::SmallWorld { degree: 2 * k, rewiring: p }, GraphSpec::Regular { degree: k },
            GraphSpec::Edges(vec![("a".into(), "b".into()), ("long-beach".into(), "b".into())]),
        ] {
            prop_assert_eq!(&spec.to_string().parse::<GraphSpec>().unwrap(), &spec);
            let json = serde_json::to_string(&spec).unwrap();
            prop_assert_eq!(&serde_json::from_str::<GraphSpec>(&json).unwrap(), &spec);
        }
    }
}

// --- edge lists and plans -------------------------------------------------------------------------------

#[test]
fn edge_lists_by_name() {
    let sites = names(&["a", "b", "c"]);
    let spec: GraphSpec = "edges:a-b, b - c,c-b".parse().unwrap();
    let g = spec.build(3, &sites, 0).unwrap();
    assert_eq!(g.edges().collect::<Vec<_>>(), [(0, 1), (1, 2)], "an edge listed twice counts once");

    #[derive(serde::Deserialize)]
    struct Plan {
        graph: GraphSpec,
    }
    let plan: Plan = toml::from_str("graph = [[\"a\", \"b\"], [\"b\", \"c\"]]").unwrap();
    assert_eq!(plan.graph.build(3, &sites, 0).unwrap(), g);
    let plan: Plan = toml::from_str("graph = \"ring\"").unwrap();
    assert_eq!(plan.graph, GraphSpec::Ring);
    let error = toml::from_str::<Plan>("graph = 3").err().unwrap().to_string();
    assert!(error.contains("array of pairs"), "{error}");
    let unnamed: GraphSpec = "edges:1-2,2-3".parse().unwrap();
    assert_eq!(unnamed.build(3, &[], 0).unwrap(), g, "agents without names are called 1 to n");
}

#[test]
fn a_stored_graph_is_checked_when_read() {
    let g = graph("ring", 5);
    let json = serde_json::to_string(&g).unwrap();
    assert_eq!(serde_json::from_str::<Graph>(&json).unwrap(), g);
    let error = serde_json::from_str::<Graph>("{\"n_agents\":3,\"edges\":[[0,1]]}").unwrap_err().to_string();
    assert!(error.contains("not connected") && error.contains("`3`"), "{error}");
}

// --- errors ---------------------------------------------------------------------------------------------

#[test]
fn unconnected_graphs_name_their_groups() {
    let sites = names(&["a", "b", "c", "d"]);
    let error = "edges:a-b,c-d".parse::<GraphSpec>().unwrap().build(4, &sites, 0).unwrap_err();
    assert_eq!(error, GraphError::NotConnected { groups: vec![names(&["a", "b"]), names(&["c", "d"])] });
    assert!(error.to_string().contains("{`a`, `b`} cannot reach {`c`, `d`}"), "{error}");
}

#[test]
fn names_that_are_wrong() {
    let sites = names(&["cleveland", "hungary"]);
    let spec: GraphSpec = "edges:cleveland-hungry".parse().unwrap();
    let error = spec.build(2, &sites, 0).unwrap_err();
    assert!(
        matches!(&error, GraphError::UnknownSite { name, suggestion: Some(s), .. } if name == "hungry" && s == "hungary")
    );
    assert!(
        error.to_string().contains("did you mean `hungary`?") && error.to_string().contains("`cleveland`")
    );

    let looped: GraphSpec = "edges:cleveland-hungary,hungary-hungary".parse().unwrap();
    assert_eq!(looped.build(2, &sites, 0).unwrap_err(), GraphError::SelfLoop { agent: "hungary".into() });
    let twins = names(&["x", "x"]);
    assert_eq!(spec.build(2, &twins, 0).unwrap_err(), GraphError::RepeatedName { name: "x".into() });
    assert_eq!(
        GraphSpec::Ring.build(3, &sites, 0).unwrap_err(),
        GraphError::NamesDoNotMatch { n_agents: 3, n_names: 2 }
    );
    assert_eq!(GraphSpec::Ring.build(0, &[], 0).unwrap_err(), GraphError::NoAgents);
    assert_eq!(Graph::from_edges(0, [], &[]).unwrap_err(), GraphError::NoAgents);
    assert_eq!(
        Graph::from_edges(2, [(0, 5)], &default_names(2)).unwrap_err(),
        GraphError::AgentOutOfRange { agent: 5, n_agents: 2 }
    );
    assert!(matches!(Graph::from_edges(2, [], &[]), Err(GraphError::NamesDoNotMatch { .. })));
}

#[test]
fn parameters_that_no_graph_has() {
    for (text, n, needle) in [
        ("grid:3x3", 10, "2x5 would do"),
        ("torus:2x2", 5, "1x5 would do"),
        ("erdos-renyi:0", 5, "probability"),
        ("erdos-renyi:1.5", 5, "probability"),
        ("geometric:-1", 5, "radius"),
        ("small-world:3,0.1", 9, "even"),
        ("small-world:10,0.1", 9, "below 9"),
        ("small-world:4,1.1", 9, "BETA"),
        ("regular:3", 5, "odd"),
        ("regular:5", 5, "at most 4"),
        ("regular:1", 4, "fewer than 2"),
        ("regular:0", 2, "fewer than 2"),
    ] {
        let error = build(text, n).unwrap_err();
        assert!(matches!(error, GraphError::Impossible { .. }), "{text}: {error}");
        assert!(error.to_string().contains(needle), "{text}: {error}");
    }
}

#[test]
fn draws_that_never_connect() {
    for text in ["erdos-renyi:0.001", "geometric:0.001"] {
        let error = build(text, 20).unwrap_err();
        assert!(matches!(error, GraphError::NoConnectedDraw { tries: 1000, seed: 42, .. }), "{error}");
        assert!(error.to_string().contains("raise the"), "{error}");
    }
}

#[test]
fn text_that_is_no_graph() {
    for (text, needle) in [
        ("hexagon", "no family called `hexagon`"),
        ("", "no family"),
        ("ring:5", "takes nothing"),
        ("regular", "needs a degree"),
        ("regular:x", "not a whole number"),
        ("erdos-renyi:nan", "not a number"),
        ("small-world:4", "two parameters"),
        ("grid:3", "form RxC"),
        ("grid:0x3", "no agents"),
        ("edges:a", "not a pair"),
        ("edges:a-b-c", "not a pair"),
        ("edges:", "pairs of site names"),
    ] {
        let error = text.parse::<GraphSpec>().unwrap_err();
        assert!(matches!(error, GraphError::Syntax { .. }));
        assert!(error.to_string().contains(needle), "{text}: {error}");
    }
}
