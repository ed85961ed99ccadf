//! Where two contracts differ, field by field.

use std::collections::BTreeMap;
use std::fmt;

use padmm_core::printable::printable;
use serde::Serialize;
use serde_json::Value;

use super::Contract;

/// A field in which two contracts differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Its path, like `settings.rounds` or `site.north.records`.
    pub field: String,
    /// Its value in the first, if it has one.
    pub here: Option<String>,
    /// Its value in the second, if it has one.
    pub there: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // One of the plans is somebody else's, and every difference is a line.
        let side = |value: &Option<String>| printable(value.as_deref().unwrap_or("absent")).into_owned();
        write!(f, "{}: {} here, {} there", printable(&self.field), side(&self.here), side(&self.there))
    }
}

/// Every field in which `here` and `there` differ, by path. There is none if their hashes are the same.
pub fn difference(here: &Contract, there: &Contract) -> Vec<Difference> {
    let (here, mut there) = (fields(here), fields(there));
    let mut found: Vec<Difference> = Vec::new();
    for (field, value) in here {
        let other = there.remove(&field);
        if other.as_ref() != Some(&value) {
            found.push(Difference { field, here: Some(value), there: other });
        }
    }
    found.extend(there.into_iter().map(|(field, value)| Difference {
        field,
        here: None,
        there: Some(value),
    }));
    found.sort_by(|a, b| a.field.cmp(&b.field));
    found
}

/// Paths and values of all fields.
fn fields(contract: &Contract) -> BTreeMap<String, String> {
    let value = serde_json::to_value(contract.draft()).expect("a contract is plain text and finite numbers");
    let mut fields = BTreeMap::new();
    flatten("", &value, &mut fields);
    fields
}

fn flatten(path: &str, value: &Value, fields: &mut BTreeMap<String, String>) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| flatten(&below(key), value, fields)),
        // Sites and columns are known by their names, so that one that is added does not shift all others.
        Value::Array(items) if !items.is_empty() && items.iter().all(|item| item["name"].is_string()) => {
            let name = |item: &Value| item["name"].as_str().unwrap_or_default().to_owned();
            let order: Vec<String> = items.iter().map(name).collect();
            fields.insert(format!("{path} (order)"), order.join(", "));
            items.iter().zip(&order).for_each(|(item, name)| flatten(&below(name), item, fields));
        }
        Value::Array(items) if path == "edges" => {
            for pair in items {
                let end = |i: usize| pair[i].as_str().unwrap_or_default().to_owned();
                fields.insert(format!("edges.{}--{}", end(0), end(1)), "present".to_owned());
            }
        }
        Value::Null => {}
        Value::String(text) => {
            fields.insert(path.to_owned(), text.clone());
        }
        other => {
            fields.insert(path.to_owned(), other.to_string());
        }
    }
}
