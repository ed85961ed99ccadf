//! The numbers of a figure as a table.

use std::fmt::Write;

use crate::chart::Figure;

/// One row for each point of each line.
pub(crate) fn write(figure: &Figure) -> String {
    let mut out = String::from("panel,label,x,mean,low,high\n");
    for panel in &figure.panels {
        let title = quoted(&panel.title);
        for series in &panel.series {
            let label = quoted(&series.label);
            for (k, (x, mean)) in series.points.iter().enumerate() {
                let _ = write!(out, "{title},{label},{x},{mean},");
                match series.band.as_ref().and_then(|band| band.get(k)) {
                    Some((low, high)) => writeln!(out, "{low},{high}"),
                    None => writeln!(out, ","),
                }
                .expect("a string takes all text");
            }
        }
    }
    out
}

/// `text` as one field, in quotes if a reader could take it for several.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) || text.trim() != text {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use crate::chart::{Figure, Panel, Series, Style};

    #[test]
    fn points_are_rows_and_texts_are_quoted() {
        let plain = Series::new("a \"b\", c", vec![(1.0, 0.1), (2.0, f64::NAN)], Style::nth(0));
        let banded =
            Series::new("line\nbreak", vec![(0.05, 1e-7)], Style::nth(1)).with_band(vec![(-1.0, 2.5)]);
        let panel = Panel { title: "ε".into(), series: vec![plain, banded], ..Panel::default() };
        let csv = Figure::new("t", vec![panel]).to_csv();
        let expected = "panel,label,x,mean,low,high\n\
                        ε,\"a \"\"b\"\", c\",1,0.1,,\n\
                        ε,\"a \"\"b\"\", c\",2,NaN,,\n\
                        ε,\"line\nbreak\",0.05,0.0000001,-1,2.5\n";
        assert_eq!(csv, expected);
    }
}
