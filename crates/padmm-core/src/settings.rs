//! Settings as people write them: declared here once, by name. Flags of the commands, keys of a `plan.toml`, keywords of the Python
//! package and the reference in the documentation are all made from these declarations.
//!
//! A setting that only one algorithm has is declared in that algorithm's file ([`OwnSetting`]).

use std::collections::BTreeMap;

use padmm_privacy::SensitivityBasis;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::algorithm::AlgorithmKind;
use crate::graph::{GraphError, GraphSpec};
use crate::loss::Loss;
use crate::plan::{AUTO, AccountantKind, Open, Output, OwnSetting, OwnSettings, PlanDraft, SiteWeights};
use crate::regularizer::Regularizer;

mod reader;

pub use reader::{as_flags, as_keywords};

/// What everybody has to know about a setting: name, kind and meaning.
#[derive(Clone, Debug)]
pub struct Setting {
    /// In kebab case: `loss-width` is the flag `--loss-width`, the key `loss-width`, the keyword `loss_width`.
    pub name: &'static str,
    /// Under which heading it is listed.
    pub group: Group,
    /// Which values it can have.
    pub kind: Kind,
    /// One letter or word for a value, for help texts.
    pub value: &'static str,
    /// What it does, with its default.
    pub help: String,
}

/// The headings under which settings are listed, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Group {
    /// Which records, and where they are.
    Data,
    /// Loss and regulariser, which define the optimum.
    Problem,
    /// Algorithm, network and penalty: who computes what.
    Algorithm,
    /// Budget, accounting and sensitivity: what is promised.
    Privacy,
    /// How many runs there are, and from which seed.
    Run,
}

impl Group {
    /// The heading as help texts and pages print it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Data => "Data",
            Self::Problem => "Problem",
            Self::Algorithm => "Algorithm",
            Self::Privacy => "Privacy",
            Self::Run => "Run",
        }
    }
}

/// What the value of a setting is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// One of some words, or a text of its own form.
    Text,
    /// Any finite number; its range is the setting's own affair.
    Number,
    /// A whole number, zero or more.
    Count,
}

/// Shorthand for a table of declarations.
pub fn setting(
    name: &'static str,
    group: Group,
    kind: Kind,
    value: &'static str,
    help: impl Into<String>,
) -> Setting {
    Setting { name, group, kind, value, help: help.into() }
}

/// The settings of a plan, for programs that know these algorithms, in the order of listings.
pub fn plan_settings(algorithms: &[AlgorithmKind]) -> Vec<Setting> {
    use Group::{Algorithm, Privacy, Problem};
    use Kind::{Count, Number, Text};
    let names: Vec<&str> = algorithms.iter().map(|kind| kind.name()).collect();
    let graph_needed: Vec<String> = algorithms
        .iter()
        .filter_map(|kind| kind.graph_needed().map(|graph| format!("{graph} for {}", kind.name())))
        .filter(|text| !text.starts_with("complete"))
        .collect();
    let graph_default = match graph_needed.as_slice() {
        [] => "complete".to_owned(),
        some => format!("{}, else complete", some.join(", ")),
    };
    let losses = if algorithms.iter().all(|kind| kind.is_private()) {
        "logistic, hinge, huberized-hinge, huber, quantile or poisson"
    } else {
        "logistic, hinge, huberized-hinge, huber, quantile, poisson or (without privacy) squared"
    };
    let mut all = vec![
        setting("loss", Problem, Text, "NAME", format!("{losses} [default: logistic]")),
        setting(
            "loss-width",
            Problem,
            Number,
            "H",
            "Width of huber [default: 0.1], huberized-hinge [default: 0.5] and quantile [default: 0.05]",
        ),
        setting(
            "quantile-level",
            Problem,
            Number,
            "T",
            "Level of quantile: the part of the labels that lies below the prediction [default: 0.5]",
        ),
        setting(
            "slope-cap",
            Problem,
            Number,
            "C",
            "Caps a record's gradient at C by capping its slope, in place of scaling its row down to the schema's norm bound [default: none]",
        ),
        setting(
            "regularizer",
            Problem,
            Text,
            "NAME",
            "none, l2, l1, elastic-net or group-lasso [default: l2]",
        ),
        setting(
            "regularization",
            Problem,
            Number,
            "L",
            "Strength Λ of the regulariser in R(x) = Λ‖x‖² (every site has R/N) [default: 0.001]",
        ),
        setting("l1-ratio", Problem, Number, "A", "Share of the L1 part in elastic-net [default: 0.5]"),
        setting(
            "algorithm",
            Algorithm,
            Text,
            "NAME",
            format!(
                "{}, or auto: by a rule on public facts; `padmm algorithms` describes them [default: p-admm; in `plan new` auto]",
                names.join(", ")
            ),
        ),
        setting(
            "graph",
            Algorithm,
            Text,
            "GRAPH",
            format!(
                "ring, path, star, complete, grid, torus, erdos-renyi:P, geometric:R, small-world:K,BETA, regular:D or edges:a-b,b-c [default: {graph_default}]"
            ),
        ),
        setting(
            "penalty",
            Algorithm,
            Number,
            "E",
            "ADMM penalty η [default: derived from public facts, and written into the plan]",
        ),
        setting(
            "rounds",
            Algorithm,
            Count,
            "K",
            "Private rounds K [default: 50; consensus-newton and private-gradient by a rule on public facts]",
        ),
    ];
    all.extend(own_settings(algorithms));
    all.extend([
        setting(
            "tolerance",
            Algorithm,
            Number,
            "T",
            "Solver tolerance as a part of 2B/n; it enters the sensitivity [default: 1e-6, hinge 1e-3]. Noise in the objective is proved for exact solves, so there it can only be tightened [default: 1e-10, or 2e-12 n]",
        ),
        setting(
            "output",
            Algorithm,
            Text,
            "WHICH",
            "Model that sites keep: smoothed (average over rounds with weights k²) or last [default: smoothed]",
        ),
        setting(
            "weights",
            Algorithm,
            Text,
            "WHICH",
            "How much a site counts: records (every record the same), sites (every site the same, as in the paper), damped (records of small sites less) or auto, by a rule on public facts [default: records; in `plan new` auto]",
        ),
        setting("epsilon", Privacy, Number, "E", "Total privacy loss ε of every site [default: 5]"),
        setting("delta", Privacy, Number, "D", "δ [default: 0.0001]"),
        setting(
            "decay",
            Privacy,
            Number,
            "R",
            "Factor R of the noise variance from round to round [default: 0.995]",
        ),
        setting(
            "accountant",
            Privacy,
            Text,
            "WHICH",
            "What calibrates the noise: exact (the best valid accounting) or paper (the method's own paper's: zCDP for Gaussian noise, basic composition for pure differential privacy; also called basic) [default: exact]",
        ),
        setting(
            "sensitivity",
            Privacy,
            Text,
            "WHICH",
            "record (derived and proven) or paper (for comparison only) [default: record]",
        ),
    ]);
    all
}

/// Those that algorithms declare for themselves, once each, with every algorithm's default.
fn own_settings(algorithms: &[AlgorithmKind]) -> Vec<Setting> {
    let mut found: Vec<(&OwnSetting, Vec<String>)> = vec![];
    for kind in algorithms {
        for own in kind.describe().own {
            let default = format!("{} {}", kind.name(), own.default);
            match found.iter_mut().find(|(known, _)| known.name == own.name) {
                Some((_, defaults)) => defaults.push(default),
                None => found.push((own, vec![default])),
            }
        }
    }
    let declare = |(own, defaults): (&OwnSetting, Vec<String>)| {
        let help = format!("{} [default: {}]", own.help, defaults.join(", "));
        setting(own.name, Group::Algorithm, Kind::Number, own.value, help)
    };
    found.into_iter().map(declare).collect()
}

/// Why settings do not make a plan. Settings stand in backticks, as in a file; [`as_flags`] and [`as_keywords`] write them the way
/// that a command or Python does.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant says what its fields hold")]
pub enum SettingsError {
    /// A name that is not declared.
    #[error("`{name}` is not a setting{advice}")]
    Unknown {
        name: String,
        /// The nearest name, as a question, or how to find them all.
        advice: String,
    },
    /// A value that is not of the setting's kind.
    #[error("`{setting}` is {found}, but it must be {needed}")]
    WrongKind { setting: String, found: String, needed: &'static str },
    /// A word that is not one of the choices.
    #[error("`{setting} = {text}` is not known: choose one of {known}")]
    UnknownName {
        setting: &'static str,
        text: String,
        /// The choices, separated by commas.
        known: String,
    },
    /// The text or the edges of `graph` make no graph.
    #[error("`graph`: {0}")]
    Graph(GraphError),
}

impl From<GraphError> for SettingsError {
    fn from(error: GraphError) -> Self {
        Self::Graph(error)
    }
}

/// Values by the names of their settings. What is left out has a default.
///
/// ```
/// use padmm_core::{algorithm, settings::Settings};
///
/// let settings = Settings::default().with("epsilon", 1.0).with("rounds", 30);
/// let plan = settings.draft(&algorithm::ALL).unwrap().check().unwrap();
/// assert_eq!(plan.settings().rounds, 30);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Settings(BTreeMap<String, Value>);

impl Settings {
    /// The same settings with this one added or replaced.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.set(name, value);
        self
    }

    /// Sets a value, whatever was there.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// Sets a number. One that is not finite is kept as its text, since no file could hold it as a number: whoever asks for it
    /// hears that it is none.
    pub fn set_number(&mut self, name: &str, value: f64) {
        match serde_json::Number::from_f64(value) {
            Some(number) => self.set(name, Value::Number(number)),
            None => self.set(name, value.to_string()),
        }
    }

    /// Removes a value and hands it over; `None` if it was not set.
    pub fn take(&mut self, name: &str) -> Option<Value> {
        self.0.remove(name)
    }

    /// Whether the setting has a value.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// What is set, in the order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// These settings, with those of `others` where these are silent.
    #[must_use]
    pub fn or(mut self, others: Self) -> Self {
        for (name, value) in others.0 {
            self.0.entry(name).or_insert(value);
        }
        self
    }

    /// Refuses names that are not declared.
    pub fn check_names<'a>(&self, known: impl IntoIterator<Item = &'a Setting>) -> Result<(), SettingsError> {
        let known: Vec<&str> = known.into_iter().map(|setting| setting.name).collect();
        match self.0.keys().find(|name| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => {
                let near = known.iter().min_by_key(|known| distance(name, known));
                let advice = match near.filter(|near| distance(name, near) <= 2) {
                    Some(near) => format!(": did you mean `{near}`?"),
                    None => format!("; those are {}", known.join(", ")),
                };
                Err(SettingsError::Unknown { name: name.clone(), advice })
            }
        }
    }

    /// Refuses values that are not of their settings' kinds.
    pub fn check_kinds<'a>(&self, known: impl IntoIterator<Item = &'a Setting>) -> Result<(), SettingsError> {
        for setting in known {
            match setting.kind {
                Kind::Text => {
                    let value =
                        self.0.get(setting.name).filter(|value| value.is_array() || value.is_object());
                    // Edges may be an array of pairs.
                    if let Some(value) = value.filter(|_| setting.name != "graph") {
                        let (setting, found) = (setting.name.to_owned(), plain(value));
                        return Err(SettingsError::WrongKind {
                            setting,
                            found,
                            needed: "a text or a number",
                        });
                    }
                }
                Kind::Number => drop(self.number(setting.name)?),
                Kind::Count => drop(self.typed::<u64>(setting.name, "a whole number, zero or more")?),
            }
        }
        Ok(())
    }

    /// The value read as a `T`; `None` if it is not set. `needed` says in an error what was expected.
    pub fn typed<T: DeserializeOwned>(
        &self,
        setting: &str,
        needed: &'static str,
    ) -> Result<Option<T>, SettingsError> {
        let Some(value) = self.0.get(setting) else { return Ok(None) };
        serde_json::from_value(value.clone()).map(Some).map_err(|_| SettingsError::WrongKind {
            setting: setting.to_owned(),
            found: plain(value),
            needed,
        })
    }

    /// The value as a number; `None` if it is not set.
    pub fn number(&self, setting: &str) -> Result<Option<f64>, SettingsError> {
        self.typed(setting, "a number")
    }

    /// The value as text; a number is written out.
    pub fn text(&self, setting: &str) -> Option<String> {
        self.0.get(setting).map(plain)
    }

    /// The value that a word stands for.
    pub fn named<T: Copy>(
        &self,
        setting: &'static str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>, SettingsError> {
        let Some(text) = self.text(setting) else { return Ok(None) };
        match choices.iter().find(|choice| choice.0 == text) {
            Some(choice) => Ok(Some(choice.1)),
            None => {
                let names: Vec<&str> = choices.iter().map(|choice| choice.0).collect();
                Err(SettingsError::UnknownName { setting, text, known: names.join(", ") })
            }
        }
    }

    /// The plan that these settings describe, which may run any of `algorithms`; still to be checked.
    pub fn draft(&self, algorithms: &[AlgorithmKind]) -> Result<PlanDraft, SettingsError> {
        let default = PlanDraft::default();
        let open = Open::of(self)?;
        let mut names: Vec<_> = algorithms.iter().map(|kind| (kind.name(), *kind)).collect();
        names.push((AUTO, default.algorithm));
        let accountants = [
            ("exact", AccountantKind::Exact),
            ("paper", AccountantKind::Paper),
            ("basic", AccountantKind::Basic),
        ];
        let bases = [("record", SensitivityBasis::Record), ("paper", SensitivityBasis::Paper)];
        let weights = [
            ("records", SiteWeights::Records),
            ("sites", SiteWeights::Sites),
            ("damped", SiteWeights::Damped),
            (AUTO, default.weights),
        ];
        let outputs = [("smoothed", Output::Smoothed), ("last", Output::Last)];
        let algorithm = self.named("algorithm", &names)?.unwrap_or(default.algorithm);
        let rounds: Option<u32> = self.typed("rounds", "a whole number from 1 on")?;
        let default_rounds = if algorithm.spec().has_rule_for_rounds() { 0 } else { default.rounds };
        Ok(PlanDraft {
            algorithm,
            rounds: rounds.filter(|_| !open.algorithm).unwrap_or(default_rounds),
            penalty: self.number("penalty")?,
            decay: self.number("decay")?.unwrap_or(default.decay),
            epsilon: self.number("epsilon")?.unwrap_or(default.epsilon),
            delta: self.number("delta")?.unwrap_or(default.delta),
            accountant: self.named("accountant", &accountants)?.unwrap_or(default.accountant),
            sensitivity: self.named("sensitivity", &bases)?.unwrap_or(default.sensitivity),
            loss: self.loss()?.unwrap_or(default.loss),
            slope_cap: self.number("slope-cap")?,
            regularizer: self.regularizer()?,
            tolerance: self.number("tolerance")?,
            output: self.named("output", &outputs)?.unwrap_or(default.output),
            weights: self.named("weights", &weights)?.unwrap_or(default.weights),
            own: self.own(algorithms)?,
            open,
        })
    }

    /// Who talks to whom: as set, else what the algorithm needs, else everybody with everybody.
    pub fn graph(&self, algorithm: AlgorithmKind) -> Result<GraphSpec, SettingsError> {
        match (self.0.get("graph"), algorithm.graph_needed()) {
            (Some(Value::String(text)), _) => Ok(text.parse()?),
            (Some(_), _) => {
                let needed = "a text, or an array of pairs of site names";
                Ok(self.typed("graph", needed)?.unwrap_or(GraphSpec::Complete))
            }
            (None, Some(needed)) => Ok(needed.parse()?),
            (None, None) => Ok(GraphSpec::Complete),
        }
    }

    fn own(&self, algorithms: &[AlgorithmKind]) -> Result<OwnSettings, SettingsError> {
        let mut own = OwnSettings::default();
        for declared in algorithms.iter().flat_map(|kind| kind.describe().own) {
            if let Some(value) = self.number(declared.name)? {
                own = own.with(declared.name, value);
            }
        }
        Ok(own)
    }

    fn loss(&self) -> Result<Option<Loss>, SettingsError> {
        let width = self.number("loss-width")?;
        let choices = [
            ("logistic", Loss::Logistic),
            ("hinge", Loss::Hinge),
            ("huberized-hinge", Loss::HuberizedHinge { width: width.unwrap_or(0.5) }),
            ("huber", Loss::Huber { width: width.unwrap_or(0.1) }),
            ("squared", Loss::Squared),
            (
                "quantile",
                Loss::Quantile {
                    level: self.number("quantile-level")?.unwrap_or(0.5),
                    width: width.unwrap_or(0.05),
                },
            ),
            // Up to which count is said by the schema.
            ("poisson", Loss::Poisson { cap: 0.0 }),
        ];
        self.named("loss", &choices)
    }

    fn regularizer(&self) -> Result<Regularizer, SettingsError> {
        let strength = self.number("regularization")?.unwrap_or(1e-3);
        let l1_ratio = self.number("l1-ratio")?.unwrap_or(0.5);
        let l2 = Regularizer::L2 { strength };
        let choices = [
            ("none", Regularizer::None),
            ("l2", l2),
            ("l1", Regularizer::L1 { strength }),
            ("elastic-net", Regularizer::ElasticNet { strength, l1_ratio }),
            ("group-lasso", Regularizer::GroupLasso { strength }),
        ];
        Ok(self.named("regularizer", &choices)?.unwrap_or(l2))
    }
}

/// A value as a person wrote it: text without quotation marks.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Insertions, deletions and replacements between two names.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm;

    #[test]
    fn a_misspelt_name_is_refused_with_the_nearest_one() {
        let known = plan_settings(&algorithm::ALL);
        let error = Settings::default().with("epsilom", 1.0).check_names(&known).unwrap_err();
        assert_eq!(error.to_string(), "`epsilom` is not a setting: did you mean `epsilon`?");
    }

    #[test]
    fn every_declared_setting_reaches_the_plan() {
        let written = Settings::default()
            .with("algorithm", "token")
            .with("relaxation", 0.25)
            .with("rounds", 7)
            .with("loss", "huber")
            .with("loss-width", 0.3);
        let draft = written.draft(&algorithm::ALL).unwrap();
        assert_eq!((draft.rounds, draft.loss), (7, Loss::Huber { width: 0.3 }));
        assert_eq!(draft.own, OwnSettings::default().with("relaxation", 0.25));
        let quantile = Settings::default().with("loss", "quantile").with("quantile-level", 0.9);
        let loss = quantile.draft(&algorithm::ALL).unwrap().loss;
        assert_eq!(loss, Loss::Quantile { level: 0.9, width: 0.05 });
    }
}
