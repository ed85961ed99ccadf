//! How one table becomes several sites, and which records are set aside.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use padmm_core::data::Dataset;
use padmm_core::plan::PlanError;
use padmm_core::schema::{Encoded, Sites as OfRecords};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha12Rng;
use rand_distr::{Distribution, Gamma};
use serde::{Deserialize, Serialize};

use crate::SimError;

/// Draws of a skewed split before it is given up as impossible.
const MAX_TRIES: usize = 1000;

/// Agents of one size that a list may ask for at once; a slip of the finger must not fill the memory.
const MAX_AGENTS: usize = 1_000_000;

/// How records are dealt to agents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Split {
    /// At random, as evenly as possible.
    Even,
    /// By the schema's site column: each site keeps its records.
    Site,
    /// Each label's records by proportions from Dirichlet(α): small α gives agents that mostly see one label.
    LabelSkew(f64),
    /// At random, with sizes from Dirichlet(α): small α gives few large agents and many small ones.
    SizeSkew(f64),
    /// At random, with sizes in a geometric sequence, the largest this many times the smallest.
    Graded(f64),
    /// At random, one agent for each number, with so many records; what is left over is not used.
    Sizes(Vec<usize>),
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Even => write!(f, "even"),
            Self::Site => write!(f, "site"),
            Self::LabelSkew(a) => write!(f, "label-skew:{a}"),
            Self::SizeSkew(a) => write!(f, "size-skew:{a}"),
            Self::Graded(ratio) => write!(f, "graded:{ratio}"),
            Self::Sizes(sizes) => {
                let item = |run: &[usize]| match run.len() {
                    1 => run[0].to_string(),
                    n => format!("{n}x{}", run[0]),
                };
                let items: Vec<String> = sizes.chunk_by(|a, b| a == b).map(item).collect();
                write!(f, "sizes:{}", items.join(","))
            }
        }
    }
}

/// `4000,3x20` is 4000, 20, 20, 20; nothing where a number is missing, zero, or no number.
fn parse_sizes(text: &str) -> Option<Vec<usize>> {
    let mut sizes = vec![];
    for item in text.split(',') {
        let (n, size) = item.split_once('x').unwrap_or(("1", item));
        let (n, size): (usize, usize) = (n.trim().parse().ok()?, size.trim().parse().ok()?);
        if n == 0 || n > MAX_AGENTS || size == 0 {
            return None;
        }
        sizes.extend(std::iter::repeat_n(size, n));
    }
    Some(sizes)
}

impl FromStr for Split {
    type Err = SimError;

    fn from_str(text: &str) -> Result<Self, SimError> {
        let unknown = || SimError::UnknownSplit { text: text.to_owned() };
        if let Some(list) = text.strip_prefix("sizes:") {
            return parse_sizes(list).map(Self::Sizes).ok_or_else(unknown);
        }
        let (name, alpha) = match text.split_once(':') {
            Some((name, alpha)) => (name, alpha.parse::<f64>().map_err(|_| unknown())?),
            None => (text, 0.5),
        };
        if !(alpha > 0.0 && alpha.is_finite()) {
            return Err(unknown());
        }
        match name {
            "even" => Ok(Self::Even),
            "site" => Ok(Self::Site),
            "label-skew" => Ok(Self::LabelSkew(alpha)),
            "size-skew" => Ok(Self::SizeSkew(alpha)),
            "graded" => Ok(Self::Graded(alpha)),
            _ => Err(unknown()),
        }
    }
}

impl TryFrom<String> for Split {
    type Error = SimError;
    fn try_from(text: String) -> Result<Self, SimError> {
        text.parse()
    }
}

impl From<Split> for String {
    fn from(split: Split) -> Self {
        split.to_string()
    }
}

/// Which records are set aside for evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Holdout {
    /// None, as in the paper: all complete records train.
    None,
    /// A random fraction of all records, above 0 and below 1.
    Fraction(f64),
    /// A random fraction of every label at every site, where there are sites; a label with a single record at a site trains.
    Stratified(f64),
    /// The published test file of a set that has one.
    Official,
}

impl fmt::Display for Holdout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => write!(f, "none"),
            Self::Fraction(x) => write!(f, "{x}"),
            Self::Stratified(x) => write!(f, "stratified:{x}"),
            Self::Official => write!(f, "official"),
        }
    }
}

impl FromStr for Holdout {
    type Err = SimError;

    fn from_str(text: &str) -> Result<Self, SimError> {
        let (number, kind): (&str, fn(f64) -> Self) = match text.split_once(':') {
            Some(("stratified", number)) => (number, Holdout::Stratified),
            _ => (text, Holdout::Fraction),
        };
        match text {
            "none" | "0" => Ok(Self::None),
            "official" => Ok(Self::Official),
            _ => match number.parse::<f64>() {
                Ok(x) if x > 0.0 && x < 1.0 => Ok(kind(x)),
                _ => Err(SimError::UnknownHoldout { text: text.to_owned() }),
            },
        }
    }
}

impl TryFrom<String> for Holdout {
    type Error = SimError;
    fn try_from(text: String) -> Result<Self, SimError> {
        text.parse()
    }
}

impl From<Holdout> for String {
    fn from(holdout: Holdout) -> Self {
        holdout.to_string()
    }
}

/// The sites of a simulation with their records.
pub struct Sites {
    /// One name for each site, in the order of the graph.
    pub names: Vec<String>,
    /// Training records of each site, in the same order.
    pub shards: Vec<Dataset>,
    /// Records that were set aside; may be empty.
    pub test: Dataset,
    /// The same by sites, where the data has sites and they are the agents.
    pub site_tests: Vec<Dataset>,
}

/// What decides who gets which record; the records themselves are not looked at.
#[derive(Clone, Copy)]
pub struct Facts<'a> {
    /// Each record's label; only its sign matters here.
    pub labels: &'a [f64],
    /// Where each record comes from, if that is known.
    pub sites: Option<&'a OfRecords>,
    /// Which records are of the published test file, if there is one.
    pub official_test: Option<&'a [bool]>,
}

impl<'a> Facts<'a> {
    /// The facts that encoded records carry with them.
    pub fn of(encoded: &'a Encoded) -> Self {
        Facts {
            labels: encoded.records.labels(),
            sites: encoded.sites.as_ref(),
            official_test: encoded.official_test.as_deref(),
        }
    }
}

/// Which record goes where, by its number.
pub struct Places {
    /// One name for each site, in the order of the graph.
    pub names: Vec<String>,
    /// Numbers of each site's training records.
    pub shards: Vec<Vec<usize>>,
    /// Numbers of the records that are set aside.
    pub test: Vec<usize>,
    /// The same by sites; empty unless the data's sites are the agents.
    pub site_tests: Vec<Vec<usize>>,
}

/// Deals the records of `encoded` to `n_agents` sites (all the sites of the site column with [`Split::Site`]).
pub fn partition(
    encoded: &Encoded,
    n_agents: Option<usize>,
    split: Split,
    holdout: Holdout,
    seed: u64,
) -> Result<Sites, SimError> {
    let records = &encoded.records;
    let assign = assign(Facts::of(encoded), n_agents, split, holdout, seed)?;
    let collect = |rows: &Vec<usize>| {
        let mut set = records.empty_like();
        set.reserve(rows.len());
        rows.iter().for_each(|&r| set.push_row(records.row(r)));
        set
    };
    Ok(Sites {
        shards: assign.shards.iter().map(collect).collect(),
        test: collect(&assign.test),
        site_tests: assign.site_tests.iter().map(collect).collect(),
        names: assign.names,
    })
}

/// Decides where each record goes, for whoever has the records in another form than encoded.
pub fn assign(
    facts: Facts<'_>,
    n_agents: Option<usize>,
    split: Split,
    holdout: Holdout,
    seed: u64,
) -> Result<Places, SimError> {
    let mut generator = ChaCha12Rng::seed_from_u64(seed);
    generator.set_stream(u64::MAX);
    let mut order: Vec<usize> = (0..facts.labels.len()).collect();
    order.shuffle(&mut generator);
    let (test, train) = set_aside(facts, order, holdout)?;
    let stays = split == Split::Site;
    let (names, shards) = match split {
        Split::Site => by_site(facts, &train, n_agents)?,
        Split::Sizes(sizes) => by_sizes(&sizes, &train, n_agents)?,
        _ => {
            let n = n_agents.unwrap_or(5);
            if n == 0 {
                let rule = "at least 1";
                return Err(PlanError::OutOfRange { setting: "agents", value: 0.0, rule }.into());
            }
            if n > train.len() {
                return Err(SimError::TooManyAgents { agents: n, records: train.len() });
            }
            (numbered(n), by_share(facts.labels, train, n, &split, &mut generator)?)
        }
    };
    let site_tests = match facts.sites {
        Some(sites) if stays => {
            let at = |s: usize| test.iter().copied().filter(|&r| sites.of_record[r] as usize == s).collect();
            (0..names.len()).map(at).collect()
        }
        _ => vec![],
    };
    Ok(Places { names, shards, test, site_tests })
}

/// Test and training rows, in the shuffled order.
fn set_aside(
    facts: Facts<'_>,
    order: Vec<usize>,
    holdout: Holdout,
) -> Result<(Vec<usize>, Vec<usize>), SimError> {
    match holdout {
        Holdout::None => Ok((vec![], order)),
        Holdout::Fraction(fraction) => {
            let n_test = (fraction * order.len() as f64).round() as usize;
            if n_test == 0 || n_test >= order.len() {
                return Err(SimError::HoldoutLeavesNothing { fraction, records: order.len() });
            }
            let (test, train) = order.split_at(n_test);
            Ok((test.to_vec(), train.to_vec()))
        }
        Holdout::Stratified(fraction) => {
            let records = order.len();
            let mut strata: BTreeMap<(u32, bool), Vec<usize>> = BTreeMap::new();
            for r in order {
                let site = facts.sites.map_or(0, |s| s.of_record[r]);
                strata.entry((site, facts.labels[r] > 0.0)).or_default().push(r);
            }
            let (mut test, mut train) = (vec![], vec![]);
            for rows in strata.values() {
                let n_test = (fraction * rows.len() as f64).round() as usize;
                let (aside, kept) = rows.split_at(n_test.min(rows.len() - 1));
                test.extend_from_slice(aside);
                train.extend_from_slice(kept);
            }
            if test.is_empty() {
                return Err(SimError::HoldoutLeavesNothing { fraction, records });
            }
            Ok((test, train))
        }
        Holdout::Official => {
            let official = facts.official_test.ok_or(SimError::NoOfficialTest)?;
            Ok(order.into_iter().partition(|&r| official[r]))
        }
    }
}

type Dealt = (Vec<String>, Vec<Vec<usize>>);

fn by_site(facts: Facts<'_>, train: &[usize], n_agents: Option<usize>) -> Result<Dealt, SimError> {
    let sites = facts.sites.ok_or(SimError::NoSiteColumn)?;
    if let Some(n) = n_agents.filter(|&n| n != sites.names.len()) {
        return Err(SimError::AgentsAreSites { agents: n, sites: sites.names.len() });
    }
    let mut assign = vec![vec![]; sites.names.len()];
    for &r in train {
        assign[sites.of_record[r] as usize].push(r);
    }
    match assign.iter().position(Vec::is_empty) {
        Some(empty) => Err(SimError::EmptySite { site: sites.names[empty].clone() }),
        None => Ok((sites.names.clone(), assign)),
    }
}

fn numbered(n: usize) -> Vec<String> {
    (1..=n).map(|i| format!("agent-{i}")).collect()
}

fn by_sizes(sizes: &[usize], train: &[usize], n_agents: Option<usize>) -> Result<Dealt, SimError> {
    if let Some(agents) = n_agents.filter(|&n| n != sizes.len()) {
        return Err(SimError::AgentsAreSizes { agents, sizes: sizes.len() });
    }
    let mut rest = train;
    let mut shards = Vec::with_capacity(sizes.len());
    for &size in sizes {
        let Some((shard, others)) = rest.split_at_checked(size) else {
            let wanted = sizes.iter().fold(0, |sum: usize, size| sum.saturating_add(*size));
            return Err(SimError::SizesTooLarge { wanted, records: train.len() });
        };
        shards.push(shard.to_vec());
        rest = others;
    }
    Ok((numbered(sizes.len()), shards))
}

fn by_share(
    labels: &[f64],
    train: Vec<usize>,
    n: usize,
    split: &Split,
    generator: &mut ChaCha12Rng,
) -> Result<Vec<Vec<usize>>, SimError> {
    for _ in 0..MAX_TRIES {
        let assign = match *split {
            Split::LabelSkew(alpha) => {
                let mut assign = vec![vec![]; n];
                let (positive, negative): (Vec<usize>, Vec<usize>) =
                    train.iter().partition(|&&r| labels[r] > 0.0);
                for class in [positive, negative] {
                    for (place, rows) in assign.iter_mut().zip(cut(&class, &dirichlet(n, alpha, generator))) {
                        place.extend_from_slice(rows);
                    }
                }
                assign
            }
            Split::SizeSkew(alpha) => {
                cut(&train, &dirichlet(n, alpha, generator)).into_iter().map(<[usize]>::to_vec).collect()
            }
            Split::Graded(ratio) => {
                let size = |i: usize| ratio.powf(i as f64 / (n.max(2) - 1) as f64);
                let sum: f64 = (0..n).map(size).sum();
                let shares: Vec<f64> = (0..n).map(|i| size(i) / sum).collect();
                cut(&train, &shares).into_iter().map(<[usize]>::to_vec).collect()
            }
            Split::Even | Split::Site | Split::Sizes(_) => {
                cut(&train, &vec![1.0 / n as f64; n]).into_iter().map(<[usize]>::to_vec).collect()
            }
        };
        if assign.iter().all(|p| !p.is_empty()) {
            return Ok(assign);
        }
        // A random draw left somebody with nothing: draw again, so that no agent is empty.
    }
    Err(SimError::SplitLeavesEmpty { split: split.to_string(), agents: n })
}

/// Consecutive pieces of `rows` in the given proportions.
fn cut<'a>(rows: &'a [usize], shares: &[f64]) -> Vec<&'a [usize]> {
    let mut sum = 0.0;
    let mut start = 0;
    let mut pieces = Vec::with_capacity(shares.len());
    for (i, share) in shares.iter().enumerate() {
        sum += share;
        let end = if i + 1 == shares.len() { rows.len() } else { (sum * rows.len() as f64).round() as usize };
        let end = end.clamp(start, rows.len());
        pieces.push(&rows[start..end]);
        start = end;
    }
    pieces
}

/// Proportions from a symmetric Dirichlet distribution.
fn dirichlet(n: usize, alpha: f64, generator: &mut ChaCha12Rng) -> Vec<f64> {
    let gamma = Gamma::new(alpha, 1.0).expect("the skew was checked to be positive");
    let draws: Vec<f64> = (0..n).map(|_| gamma.sample(generator)).collect();
    let sum: f64 = draws.iter().sum();
    if sum > 0.0 {
        return draws.iter().map(|d| d / sum).collect();
    }
    // Tiny α: every draw underflowed; the limit of the distribution gives all to one.
    let chosen = generator.random_range(0..n);
    (0..n).map(|i| f64::from(u8::from(i == chosen))).collect()
}
