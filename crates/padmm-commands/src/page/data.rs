//! What the script of a page reads, and files as addresses.

use std::fmt::Write;

use super::chart::{Keys, Plotted};
use crate::chart::scale::{Axis, Scale};
use crate::chart::{Figure, Series};

/// The numbers behind a figure as JSON that can stand in a script element.
pub(super) fn json(figure: &Figure, plots: &[Plotted<'_>], keys: &Keys<'_>) -> String {
    let mut panels = Vec::with_capacity(plots.len());
    for (index, (panel, plot)) in figure.panels.iter().zip(plots).enumerate() {
        let frame = plot.frame();
        let series: Vec<String> = panel
            .series
            .iter()
            .enumerate()
            .map(|(k, series)| series_json(series, keys.of_series(figure, index, k)))
            .collect();
        panels.push(format!(
            "{{\"xLabel\":{},\"frame\":[{},{},{},{}],\"x\":{},\"y\":{},\"series\":[{}]}}",
            string(&panel.x_label),
            number(frame.left),
            number(frame.top),
            number(frame.width),
            number(frame.height),
            axis(&plot.layout.x),
            axis(&plot.layout.y),
            series.join(",")
        ));
    }
    format!("{{\"panels\":[{}]}}", panels.join(","))
}

fn axis(axis: &Axis) -> String {
    let (scale, low, high) = axis.ends();
    format!("{{\"log\":{},\"low\":{},\"high\":{}}}", scale == Scale::Log, number(low), number(high))
}

fn series_json(series: &Series, key: Option<usize>) -> String {
    let list = |values: &mut dyn Iterator<Item = f64>| values.map(number).collect::<Vec<_>>().join(",");
    let mut out = format!(
        "{{\"label\":{},\"key\":{},\"class\":{},\"x\":[{}],\"y\":[{}]",
        string(&series.label),
        key.map_or("null".to_owned(), |k| k.to_string()),
        string(&series.style.class()),
        list(&mut series.points.iter().map(|p| p.0)),
        list(&mut series.points.iter().map(|p| p.1)),
    );
    if let Some(band) = &series.band {
        let _ = write!(
            out,
            ",\"low\":[{}],\"high\":[{}]",
            list(&mut band.iter().map(|b| b.0)),
            list(&mut band.iter().map(|b| b.1))
        );
    }
    out.push('}');
    out
}

/// A number with as many digits as a reader of a chart can use; what is no number is null.
fn number(value: f64) -> String {
    if !value.is_finite() {
        return "null".to_owned();
    }
    let rounded: f64 = format!("{value:.7e}").parse().expect("a printed number reads back");
    let size = rounded.abs();
    if size == 0.0 || (1e-4..1e9).contains(&size) { format!("{rounded}") } else { format!("{rounded:e}") }
}

/// A JSON string without any character that could end a script element or start a comment in it.
fn string(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '<' | '>' | '&' | '\'' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A file as an address, for a link that saves it.
pub(super) fn data_uri(media_type: &str, content: &str) -> String {
    let mut out = format!("data:{media_type},");
    for byte in content.bytes() {
        let is_plain = byte.is_ascii_alphanumeric()
            || matches!(byte, b'-' | b'_' | b'.' | b'~' | b',' | b'/' | b':' | b'=');
        if is_plain {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_valid() {
        let written = [0.1 + 0.2, -0.0, 1e300, 1.23456789e-12, f64::NAN, f64::INFINITY, 50.0].map(number);
        assert_eq!(written, ["0.3", "-0", "1e300", "1.2345679e-12", "null", "null", "50"]);
    }

    #[test]
    fn strings_cannot_leave_their_element() {
        assert_eq!(string("</script><!-- \"\\\n\u{2028}"), {
            "\"\\u003c/script\\u003e\\u003c!-- \\\"\\\\\\u000a\\u2028\""
        });
    }

    #[test]
    fn addresses_keep_every_byte() {
        assert_eq!(data_uri("text/csv", "a b,ε\n\"#%"), "data:text/csv,a%20b,%CE%B5%0A%22%23%25");
    }
}
