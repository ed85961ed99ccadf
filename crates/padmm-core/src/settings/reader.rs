//! Messages of libraries in the language of whoever reads them: as flags, or as keywords of Python.

use super::Setting;

/// A message of a library with its settings written as flags: `` `loss = huber` `` becomes `--loss huber`.
pub fn as_flags(message: &str, known: &[Setting]) -> String {
    rewrite(message, known, |name, value| match value {
        Some(value) => format!("--{name} {value}"),
        None => format!("--{name}"),
    })
}

/// A message of a library with its settings written as keywords of Python: `` `loss = huber` `` becomes `loss='huber'`.
pub fn as_keywords(message: &str, known: &[Setting]) -> String {
    rewrite(message, known, |name, value| {
        let name = name.replace('-', "_");
        match value {
            Some(value) if value.parse::<f64>().is_ok() => format!("{name}={value}"),
            Some(value) => format!("{name}='{value}'"),
            None => name,
        }
    })
}

fn rewrite(message: &str, known: &[Setting], write: impl Fn(&str, Option<&str>) -> String) -> String {
    let parts: Vec<&str> = message.split('`').collect();
    let mut text = String::with_capacity(message.len());
    for (i, part) in parts.iter().enumerate() {
        // Odd parts stand between backticks, unless the last one was never closed.
        let is_quoted = i % 2 == 1 && i + 1 < parts.len();
        let (name, value) = part.split_once(" = ").map_or((*part, None), |(name, value)| (name, Some(value)));
        if is_quoted && known.iter().any(|setting| setting.name == name) {
            text.push_str(&write(name, value));
        } else if is_quoted {
            text.push_str(&format!("`{part}`"));
        } else {
            text.push_str(part);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm;
    use crate::settings::plan_settings;

    #[test]
    fn a_message_speaks_the_language_of_its_reader() {
        let known = plan_settings(&algorithm::ALL);
        let message = "`loss-width` is -1, use `loss = huber` or `padmm algorithms`";
        let flags = "--loss-width is -1, use --loss huber or `padmm algorithms`";
        assert_eq!(as_flags(message, &known), flags);
        let keywords = "loss_width is -1, use loss='huber' or `padmm algorithms`";
        assert_eq!(as_keywords(message, &known), keywords);
    }
}
