//! Text that somebody else wrote, made safe to show.
//!
//! A neighbour's reason, a column of a plan's schema, the subject of a certificate: whoever chose such a text also chose where its lines end,
//! in which direction it runs, and what a terminal does with it. Shown as it is, one line break is enough for a log line that the
//! site never wrote. So everything that is shown goes through this file: log lines and errors as one line ([`printable`]), what a command
//! prints ([`printable_lines`], [`printable_json`]), pages (the escaping of HTML calls [`is_hidden`]).
//!
//! A character that cannot be seen, or that moves others, is replaced by its number, like `\u{1b}`; line breaks and tabs by `\n`, `\r` and
//! `\t`. A backslash stays as it is: the text is for reading, not for parsing back.

use std::borrow::Cow;

/// Whether `c` ends a line, drives a terminal, or changes the direction of what follows: no name or value of a plan may contain one.
pub fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether `c` is a control character or cannot be seen at all, so that two texts that differ in it look alike.
pub fn is_hidden(c: char) -> bool {
    is_control(c)
        || matches!(
            c,
            '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// `text` as one line, with every hidden character replaced by its number.
pub fn printable(text: &str) -> Cow<'_, str> {
    replaced(text, |_, _| false)
}

/// The same for a text of several lines whose line breaks are the caller's own: they stay, and nothing else does.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    replaced(text, |c, next| c == '\n' || c == '\r' && next == Some('\n'))
}

/// The text of a JSON document in which hidden characters are written as JSON writes them: the document means what it meant before.
///
/// JSON itself replaces the lowest control characters only, and leaves those that turn text around.
pub fn printable_json(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| is_hidden(c) && c != '\n') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut units = [0; 2];
    for c in text.chars() {
        // A line break stands between tokens: inside a string JSON has replaced it.
        if is_hidden(c) && c != '\n' {
            c.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

fn replaced(text: &str, stays: impl Fn(char, Option<char>) -> bool) -> Cow<'_, str> {
    if !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if !is_hidden(c) || stays(c, rest.peek().copied()) {
            out.push(c);
            continue;
        }
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an attacker would put behind a plausible beginning.
    const FORGED: &str = "2026-01-01T00:00:00Z info    ash: round 3 of 8: epsilon so far 0.0000";

    #[test]
    fn no_text_begins_a_second_line_or_drives_a_terminal() {
        for before in [
            "\n",
            "\r",
            "\r\n",
            "\u{85}",
            "\u{2028}",
            "\u{2029}",
            "\u{b}",
            "\u{c}",
            "\u{1b}[2K\u{1b}[1A",
            "\u{9b}1A",
            "\u{8}",
        ] {
            let shown = printable(&format!("bye{before}{FORGED}")).into_owned();
            assert!(shown.ends_with(FORGED) && shown.starts_with("bye\\"), "{shown:?}");
            assert!(!shown.chars().any(is_hidden), "{shown:?}");
        }
    }

    #[test]
    fn text_cannot_run_the_other_way_or_hide_letters() {
        assert_eq!(printable("a\u{202e}b\u{2066}c"), "a\\u{202e}b\\u{2066}c");
        assert_eq!(printable("oslo\u{200b}\u{e0041}"), "oslo\\u{200b}\\u{e0041}");
    }

    #[test]
    fn ordinary_text_of_any_language_is_left_alone() {
        for text in ["", "ε = 5, δ ≤ 10⁻⁵", "Tromsø", "東京", "e\u{301}", "C:\\new", "مستشفى", "👩"]
        {
            assert!(matches!(printable(text), Cow::Borrowed(same) if same == text), "{text}");
        }
    }

    #[test]
    fn of_a_text_of_lines_only_the_line_breaks_stay() {
        assert_eq!(printable_lines("a\r\nb\nc\rd\u{1b}[2K\te"), "a\r\nb\nc\\rd\\u{1b}[2K\\te");
    }

    #[test]
    fn json_keeps_its_meaning() {
        let value = serde_json::json!({ "reason": "a\u{202e}b\u{7f}\u{9b}\u{e0041}\n" });
        let text = printable_json(&format!("{value:#}")).into_owned();
        assert!(!text.chars().any(|c| is_hidden(c) && c != '\n'), "{text:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
