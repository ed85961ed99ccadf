//! Advice from public facts: what is asked for, what is refused, and what the rule picks.

use padmm_core::advice::{
    Advice, AdviceError, Effort, Question, Recommended, Signal, advise, is_mostly_noise, recommend,
};
use padmm_core::algorithm::{ALL, CONSENSUS_NEWTON, P_ADMM};
use padmm_core::calibration::NetworkFacts;
use padmm_core::data::{Dataset, FeatureSpace};
use padmm_core::graph::Graph;
use padmm_core::loss::Loss;
use padmm_core::plan::{AUTO, Open, PlanDraft, PlanError, SiteWeights};
use padmm_core::settings::Settings;

/// Two numbers, two categorical columns and an intercept.
fn space() -> FeatureSpace {
    FeatureSpace {
        names: (0..9).map(|j| j.to_string()).collect(),
        groups: vec![0..1, 1..2, 2..4, 4..8],
        intercept: Some(8),
        n_numeric: 2,
    }
}

struct Case {
    draft: PlanDraft,
    space: FeatureSpace,
    n_records: Vec<usize>,
    effort: Effort,
    wanted: Option<f64>,
}

impl Case {
    fn of(n_records: &[usize]) -> Self {
        Self {
            draft: PlanDraft { epsilon: 1.0, ..PlanDraft::default() },
            space: space(),
            n_records: n_records.to_vec(),
            effort: Effort::Full,
            wanted: None,
        }
    }

    fn with<T>(&self, work: impl FnOnce(&Question<'_>) -> T, signal: Signal<'_>) -> T {
        let plan = self.draft.clone().check().unwrap();
        let graph = Graph::complete(self.n_records.len()).unwrap();
        let network =
            NetworkFacts { graph: &graph, n_records: &self.n_records, space: &self.space, norm_bound: 1.0 };
        let names: Vec<String> = (1..=self.n_records.len()).map(|i| format!("site{i}")).collect();
        work(&Question {
            plan: &plan,
            network: &network,
            names: &names,
            signal,
            epsilons: &[0.2, 1.0, 5.0],
            wanted_auc_loss: self.wanted,
            effort: self.effort,
        })
    }

    fn advice(&self) -> Result<Advice, AdviceError> {
        self.with(advise, Signal::Assumed { auc: 0.8, positive: 0.3 })
    }

    fn recommended(&self) -> Recommended {
        let pick = |q: &Question<'_>| recommend(q.plan, q.network).unwrap();
        self.with(pick, Signal::Assumed { auc: 0.8, positive: 0.3 })
    }
}

#[test]
fn the_rule_picks_by_public_facts() {
    let even = Case::of(&[1000; 5]).recommended();
    assert_eq!((even.kind(), even.weights), (CONSENSUS_NEWTON, SiteWeights::Records));
    let unequal = Case::of(&[4000, 3000, 2000, 20, 10]).recommended();
    assert_eq!((unequal.kind(), unequal.weights), (CONSENSUS_NEWTON, SiteWeights::Damped));
    assert!(unequal.reasons[0].contains("2 of 5 sites"), "{:?}", unequal.reasons);

    // Heart Disease: damping would take a tenth of the noise away, and costs more than it gains.
    assert_eq!(Case::of(&[200, 172, 31, 86]).recommended().weights, SiteWeights::Records);

    let mut hinge = Case::of(&[1000; 5]);
    hinge.draft.loss = Loss::Hinge;
    let hinge = hinge.recommended();
    assert_eq!((hinge.kind(), hinge.rounds), (P_ADMM, 50));
    assert!(hinge.penalty.is_some());

    let mut bare = Case::of(&[1000; 5]);
    bare.space = FeatureSpace::numeric(4);
    assert_eq!(bare.recommended().kind(), P_ADMM);
}

/// The boundary, by leaving the site out of the noise factor `√N/n`.
#[test]
fn a_site_is_mostly_noise_below_half_the_average() {
    let factor = |n: &[usize]| (n.len() as f64).sqrt() / n.iter().sum::<usize>() as f64;
    for small in [1, 100, 400, 480, 500, 520, 600, 1000] {
        let sites = [1000, 1000, 1000, small];
        assert_eq!(is_mostly_noise(&sites, 3), factor(&sites[..3]) < factor(&sites), "{small}");
    }
}

#[test]
fn more_budget_costs_less_and_small_sites_are_named() {
    let mut case = Case::of(&[900, 800, 700, 15]);
    case.wanted = Some(0.05);
    let advice = case.advice().unwrap();
    for kind in [CONSENSUS_NEWTON, P_ADMM] {
        let line: Vec<_> = advice.frontier.iter().filter(|e| e.algorithm == kind.name()).collect();
        assert_eq!(line.iter().map(|e| e.epsilon).collect::<Vec<_>>(), [0.2, 1.0, 5.0]);
        assert!(line.windows(2).all(|w| w[0].excess_objective > w[1].excess_objective), "{line:?}");
        assert!(line.iter().all(|e| e.excess_objective > 0.0 && e.auc < advice.pooled.auc + 0.01));
    }
    let noisy: Vec<bool> = advice.sites.iter().map(|s| s.adds_more_noise_than_knowledge).collect();
    assert_eq!(noisy, [false, false, false, true]);
    // Whatever is done about the small site lowers the noise.
    assert!(advice.alternatives[1..].iter().all(|a| a.noise_factor < advice.alternatives[0].noise_factor));
    // A site of 15 records gains more than one of 900.
    let gain = |i: usize| advice.sites[i].combined_auc - advice.sites[i].own_auc;
    assert!(gain(3) > gain(0), "{:?}", advice.sites);
    let needed = advice.epsilon_needed.unwrap().epsilon.unwrap();
    assert!((0.2..5.0).contains(&needed), "{needed}");
    assert!(advice.warnings.iter().any(|w| w.contains("site4")), "{:?}", advice.warnings);
    assert_eq!(advice, case.advice().unwrap(), "the same question has the same answer");
}

#[test]
fn tiny_networks_are_warned() {
    let mut case = Case::of(&[30, 30, 30]);
    case.draft.epsilon = 0.1;
    case.effort = Effort::Quick;
    case.draft.algorithm = CONSENSUS_NEWTON;
    case.draft.rounds = 0;
    let advice = case.advice().unwrap();
    assert_eq!(advice.frontier.len(), 1);
    assert!(advice.warnings.iter().any(|w| w.contains("noise level")), "{:?}", advice.warnings);
}

#[test]
fn what_makes_no_sense_is_refused_with_what_to_do() {
    let case = Case::of(&[100; 3]);
    let refused = |signal| case.with(advise, signal).unwrap_err().to_string();
    assert!(refused(Signal::Assumed { auc: 0.5, positive: 0.3 }).contains("`auc` is 0.5"));
    assert!(refused(Signal::Assumed { auc: 0.8, positive: 1.0 }).contains("`positive` is 1"));
    let few = Dataset::new(9, 2, 3, 1.0);
    assert!(refused(Signal::Table(&few)).contains("the public table has 0 usable records"));
    let mut wanted = Case::of(&[100; 3]);
    wanted.wanted = Some(0.7);
    assert!(wanted.advice().unwrap_err().to_string().contains("`wanted-auc-loss` is 0.7"));
    assert!(Case::of(&[100, 0]).advice().unwrap_err().to_string().contains("site2 has no records"));
    let mut number = Case::of(&[100; 3]);
    number.draft.loss = Loss::Huber { width: 0.1 };
    assert_eq!(number.advice().unwrap_err(), AdviceError::NotClassification);
}

/// What the rule makes of settings for these sites.
fn picked(n_records: &[usize], settings: &Settings) -> Result<PlanDraft, PlanError> {
    let case = Case::of(n_records);
    let plan = settings.draft(&ALL).unwrap().check()?;
    let for_network = |q: &Question<'_>| plan.for_network(q.network);
    Ok(case.with(for_network, Signal::Assumed { auc: 0.8, positive: 0.3 })?.settings().clone())
}

#[test]
fn the_rule_fills_what_settings_leave_open_and_nothing_else() {
    let unequal = [4000, 3000, 2000, 20, 10];
    let auto = || Settings::default().with("algorithm", AUTO).with("weights", AUTO).with("epsilon", 1.0);
    let all = picked(&unequal, &auto()).unwrap();
    let recommended = Case::of(&unequal).recommended();
    assert_eq!((all.algorithm, all.weights), (CONSENSUS_NEWTON, SiteWeights::Damped));
    assert_eq!((all.rounds, &all.open), (recommended.rounds, &Open::default()));

    let of = |settings: Settings| picked(&unequal, &settings).map(|d| (d.algorithm, d.weights, d.rounds));
    let (damped, records) = (SiteWeights::Damped, SiteWeights::Records);
    assert_eq!(of(auto().with("rounds", 12)).unwrap(), (CONSENSUS_NEWTON, damped, 12));
    assert_eq!(of(auto().with("weights", "records")).unwrap().1, records);
    assert_eq!(of(auto().with("algorithm", "p-admm")).unwrap(), (P_ADMM, damped, 50));
    assert_eq!(of(auto().with("loss", "hinge")).unwrap(), (P_ADMM, damped, 50));
    // What only P-ADMM has a use for picks it.
    for (name, value) in [("penalty", 0.1), ("decay", 0.9), ("tolerance", 1e-5), ("slope-cap", 0.5)] {
        assert_eq!(of(auto().with(name, value)).unwrap().0, P_ADMM, "{name}");
    }
    assert_eq!(of(auto().with("sensitivity", "paper")).unwrap().0, P_ADMM);
    let own = of(auto().with("relaxation", 0.5)).unwrap_err().to_string();
    assert!(own.contains("`relaxation` is not a setting of those that `auto` picks from"), "{own}");
    // Nothing is left to the rule unless somebody asks for it.
    assert_eq!(of(Settings::default()).unwrap(), (P_ADMM, records, 50));
}

#[test]
fn a_round_too_few_is_refused_with_what_to_do() {
    let of = |algorithm: &str, rounds: u32| {
        let settings = Settings::default().with("algorithm", algorithm).with("rounds", rounds);
        settings.draft(&ALL).unwrap().check().map(|_| ()).map_err(|e| e.to_string())
    };
    let refused = of("consensus-newton", 1).unwrap_err();
    assert!(refused.contains("at least 2: the first learns the metric; 0 lets the rule choose"), "{refused}");
    assert!(of("p-admm", 0).unwrap_err().ends_with("it must be at least 1"));
    for (algorithm, rounds) in
        [("consensus-newton", 0), ("consensus-newton", 2), ("private-gradient", 0), ("private-gradient", 1)]
    {
        assert_eq!(of(algorithm, rounds), Ok(()), "{algorithm} {rounds}");
    }
}
