//! Every entry as a table or as JSON, for other tools.

use serde_json::{Value, json};

use super::chain::StoredEntry;
use super::entry::Entry;
use super::verify::LedgerView;
use crate::identity::to_hex;

/// Finds the released integers in the bytes that left; `None` leaves them as bytes.
pub type Decoder<'a> = &'a dyn Fn(&[u8]) -> Option<Vec<i64>>;

fn body(stored: &StoredEntry) -> Value {
    serde_json::from_str(&stored.entry.body()).expect("it was written by us")
}

/// All entries as one JSON object. Bytes are hexadecimal digits.
pub fn to_json(view: &LedgerView, decode: Decoder<'_>) -> Value {
    let entry = |stored: &StoredEntry| {
        let mut object = json!({
            "seq": stored.seq, "at": stored.at, "kind": stored.entry.kind(), "body": body(stored),
            "previous": stored.previous.to_string(), "hash": stored.hash.to_string(),
        });
        if let Some(payload) = &stored.payload {
            object["payload"] = json!(to_hex(payload));
            object["integers"] = json!(decode(payload));
        }
        object
    };
    let entries: Vec<Value> = view.entries().iter().map(entry).collect();
    json!({ "format": view.state().opened().format, "entries": entries })
}

/// All entries as CSV: one line each, with the fields that most have as columns and the whole body as JSON.
pub fn to_csv(view: &LedgerView, decode: Decoder<'_>) -> String {
    let mut text = String::from("seq,at,kind,run,round,rho,bytes,body,integers,payload,previous,hash\n");
    for stored in view.entries() {
        let body = body(stored);
        let of = |name: &str| match &body[name] {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let of_charge = |name: &str| match stored.entry {
            Entry::Released(_) | Entry::Forfeited(_) => of(name),
            _ => String::new(),
        };
        let payload = stored.payload.as_deref();
        let integers = payload
            .and_then(decode)
            .map(|values| values.iter().map(i64::to_string).collect::<Vec<_>>().join(" "));
        let fields = [
            stored.seq.to_string(),
            stored.at.clone(),
            stored.entry.kind().to_owned(),
            of("run"),
            of_charge("round"),
            of_charge("rho"),
            of_charge("bytes"),
            body.to_string(),
            integers.unwrap_or_default(),
            payload.map(to_hex).unwrap_or_default(),
            stored.previous.to_string(),
            stored.hash.to_string(),
        ];
        text += &fields.map(|field| quoted(&field)).join(",");
        text.push('\n');
    }
    text
}

/// A field of CSV, in quotation marks where it needs them (RFC 4180).
fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}
