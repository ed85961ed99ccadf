//! Text: how wide it is, how it is escaped, how numbers are written.

use padmm_core::printable::is_hidden;

/// The fonts to try, in this order. The first is the one built in for PNG; the next ones have nearly its widths, so
/// an SVG keeps its layout on a machine without it.
pub(crate) const FONT_FAMILY: &str = "DejaVu Sans, Verdana, Bitstream Vera Sans, Geneva, Arial, sans-serif";

/// Advance widths of DejaVu Sans for the characters from space to tilde, in thousandths of the font size.
const WIDTHS: [u16; 95] = [
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636, 636, 636,
    636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632, 575, 775, 752, 295,
    295, 656, 557, 863, 748, 787, 603, 787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838,
    500, 500, 613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612, 635, 635, 411, 521,
    392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838,
];

/// The width of `text` in a font of `size`; bold is about a tenth wider.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    let thousandths: u32 = text
        .chars()
        .map(|c| match c {
            ' '..='~' => u32::from(WIDTHS[c as usize - 32]),
            '⁰'..='⁹' | '¹' | '²' | '³' => 401,
            '⁻' => 528,
            '−' | '×' | '±' | '≤' | '≥' => 838,
            '\u{1100}'.. => 1000,
            _ => 640,
        })
        .sum();
    f64::from(thousandths) * size / 1000.0
}

/// Breaks `text` into lines no wider than `limit`; a word that is wider stands alone.
pub(crate) fn wrap(text: &str, size: f64, limit: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            let longer = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
            if !line.is_empty() && width(&longer, size) > limit {
                lines.push(std::mem::replace(&mut line, word.to_owned()));
            } else {
                line = longer;
            }
        }
        if !line.is_empty() {
            lines.push(line);
        }
    }
    lines
}

/// `text` without characters that XML gives a meaning or forbids, and with those that cannot be seen or turn text around as numbers.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(' '),
            '\u{fffe}' | '\u{ffff}' => {}
            c if is_hidden(c) => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

/// A coordinate with at most two decimals and no needless zeros.
pub(crate) fn coordinate(value: f64) -> String {
    debug_assert!(value.is_finite(), "a coordinate is a number");
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// `value` with `decimals` decimals and a true minus sign.
pub(crate) fn decimal(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let zero = text.trim_start_matches('-').chars().all(|c| c == '0' || c == '.');
    if zero { text.trim_start_matches('-').to_owned() } else { text.replace('-', "−") }
}

/// `10` with `exponent` raised.
pub(crate) fn power_of_ten(exponent: i32) -> String {
    let digits = exponent.to_string();
    let raised = digits.chars().map(|c| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        digit => char::from_u32('⁰' as u32 + digit as u32 - '0' as u32).unwrap_or(digit),
    });
    std::iter::once('1').chain(std::iter::once('0')).chain(raised).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_plainly() {
        assert_eq!(coordinate(12.5), "12.5");
        assert_eq!(coordinate(-0.001), "0");
        assert_eq!(coordinate(100.0), "100");
        assert_eq!(decimal(-0.25, 2), "−0.25");
        assert_eq!(decimal(-0.0, 1), "0.0");
        assert_eq!(power_of_ten(-12), "10⁻¹²");
        assert_eq!(power_of_ten(0), "10⁰");
    }

    #[test]
    fn text_is_escaped_and_wrapped() {
        assert_eq!(escape("a<b & \"c\"\u{1}\u{202e}"), "a&lt;b &amp; &quot;c&quot;\\u{1}\\u{202e}");
        let lines = wrap("one two three four", 10.0, 60.0);
        assert_eq!(lines, ["one two", "three four"]);
        assert!(wrap("", 10.0, 60.0).is_empty());
        assert_eq!(wrap("unbreakable", 10.0, 1.0), ["unbreakable"]);
    }
}
