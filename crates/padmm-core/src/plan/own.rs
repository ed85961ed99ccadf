//! Settings that an algorithm does not share with others: declared in the algorithm's file, and nowhere else.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The declaration of such a setting. Flags, keys of files, keywords of Python and the documentation are made from it.
#[derive(Clone, Copy, Debug)]
pub struct OwnSetting {
    /// In kebab case, as keys and flags have it.
    pub name: &'static str,
    /// One letter or word for a value, for help texts.
    pub value: &'static str,
    /// What it does, without its default.
    pub help: &'static str,
    /// The value of the method's own paper, where it has one.
    pub default: f64,
    /// Whether a value is within range.
    pub allows: fn(f64) -> bool,
    /// The same range in words, for the error.
    pub rule: &'static str,
}

/// What a plan says about them, by name. Unknown keys of a plan end up here too; checking the plan refuses whatever its algorithm
/// does not declare.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OwnSettings(BTreeMap<String, Value>);

impl OwnSettings {
    /// The same settings with this one added or replaced.
    #[must_use]
    pub fn with(mut self, name: &str, value: f64) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    /// What the plan says, else the default.
    pub fn value(&self, setting: &OwnSetting) -> f64 {
        self.0.get(setting.name).and_then(Value::as_f64).unwrap_or(setting.default)
    }

    /// What was set, in the order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}
