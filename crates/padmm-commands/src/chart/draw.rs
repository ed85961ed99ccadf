//! The page: title, panels in rows, caption.

use std::fmt::Write;

use crate::chart::legend::Legend;
use crate::chart::panel::{Layout, Parts};
use crate::chart::text::{FONT_FAMILY, coordinate, escape, wrap};
use crate::chart::{Figure, Panel, Scale};

const MARGIN: f64 = 18.0;
const GAP: f64 = 26.0;
/// The text colours: what is read first, and what is read later.
pub(crate) const INK: &str = "#1a1a1a";
pub(crate) const GREY: &str = "#595959";

/// A rectangle, y downwards.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Area {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A line of text with its baseline at `(x, y)`.
pub(crate) fn text(
    out: &mut String,
    (x, y): (f64, f64),
    size: f64,
    colour: &str,
    anchor: Anchor,
    words: &str,
) {
    let anchor = match anchor {
        Anchor::Start => "",
        Anchor::Middle => " text-anchor=\"middle\"",
        Anchor::End => " text-anchor=\"end\"",
    };
    let _ = writeln!(
        out,
        "<text x=\"{}\" y=\"{}\" font-size=\"{size}\" fill=\"{colour}\"{anchor}>{}</text>",
        coordinate(x),
        coordinate(y),
        escape(words)
    );
}

/// A line of text in bold, from its left end.
fn bold(out: &mut String, at: (f64, f64), size: f64, words: &str) {
    out.push_str("<g font-weight=\"bold\">");
    text(out, at, size, INK, Anchor::Start, words);
    out.push_str("</g>\n");
}

/// The whole SVG file: title, panels, caption, and a description for screen readers.
pub(crate) fn svg(figure: &Figure) -> String {
    let side = |s: f64| if s.is_finite() { s.clamp(120.0, 16_384.0) } else { 800.0 };
    let (page_width, page_height) = (side(figure.width), side(figure.height));
    let mut out = String::new();
    let _ = writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{w}\" height=\"{h}\" viewBox=\"0 0 {w} {h}\" \
         font-family=\"{FONT_FAMILY}\" role=\"img\">",
        w = coordinate(page_width),
        h = coordinate(page_height),
    );
    let _ = writeln!(out, "<title>{}</title>", escape(&figure.title));
    let _ = writeln!(out, "<desc>{}</desc>", escape(&description(figure)));
    let _ = writeln!(out, "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>");

    let inner = page_width - 2.0 * MARGIN;
    let mut top = MARGIN;
    // Bold letters are wider than the table of widths says.
    for line in wrap(&figure.title, 16.0 * 1.12, inner) {
        top += 16.0;
        bold(&mut out, (MARGIN, top), 16.0, &line);
        top += 5.0;
    }
    for line in wrap(&figure.subtitle, 11.5, inner) {
        top += 12.5;
        text(&mut out, (MARGIN, top), 11.5, GREY, Anchor::Start, &line);
        top += 3.0;
    }
    if top > MARGIN {
        top += 12.0;
    }
    if figure.shared_legend {
        let legend = Legend::new(&figure.panels, inner);
        legend.draw(&mut out, MARGIN, top + 2.0);
        top += legend.height() + 8.0;
    }
    let caption = wrap(&figure.caption, 10.0, inner);
    let mut bottom = page_height - MARGIN;
    if !caption.is_empty() {
        bottom -= 14.0 * caption.len() as f64 + 6.0;
        for (k, line) in caption.iter().enumerate() {
            let baseline = bottom + 6.0 + 14.0 * (k as f64 + 0.8);
            text(&mut out, (MARGIN, baseline), 10.0, GREY, Anchor::Start, line);
        }
    }
    let area = Area { left: MARGIN, top, width: inner, height: (bottom - top).max(40.0) };
    panels(&mut out, figure, area);
    out.push_str("</svg>\n");
    out
}

/// The panels in rows; those of one row share the top and the bottom of their plots.
fn panels(out: &mut String, figure: &Figure, area: Area) {
    let columns = figure.columns.clamp(1, figure.panels.len().max(1));
    let rows = figure.panels.len().div_ceil(columns);
    let width = (area.width - GAP * (columns - 1) as f64) / columns as f64;
    let height = (area.height - GAP * rows.saturating_sub(1) as f64) / rows.max(1) as f64;
    let parts = Parts { title_and_note: true, legend: !figure.shared_legend };
    for (row, panels) in figure.panels.chunks(columns).enumerate() {
        let top = area.top + row as f64 * (height + GAP);
        let layouts: Vec<Layout<'_>> = panels.iter().map(|p| Layout::new(p, width, height, parts)).collect();
        let above = layouts.iter().map(Layout::above).fold(0.0, f64::max);
        let below = layouts.iter().map(Layout::below).fold(0.0, f64::max);
        for (column, layout) in layouts.iter().enumerate() {
            let left = area.left + column as f64 * (width + GAP);
            layout.draw(out, Area { left, top, width, height }, above, below);
        }
    }
}

/// The title of a panel, in as many lines as it takes.
pub(crate) fn panel_title(out: &mut String, (x, y): (f64, f64), lines: &[String]) {
    for (k, line) in lines.iter().enumerate() {
        bold(out, (x, y + 16.0 * k as f64), 12.5, line);
    }
}

/// What the figure shows, in a sentence for each line, for readers who do not see it.
fn description(figure: &Figure) -> String {
    let mut words = figure.subtitle.clone();
    for panel in &figure.panels {
        let _ = write!(words, " {}", panel_description(panel));
    }
    words.trim().to_owned()
}

/// What one panel shows, in a sentence for each line.
pub(crate) fn panel_description(panel: &Panel) -> String {
    let Panel { title, x_label, y_label, y_scale, series, references, .. } = panel;
    let log = if *y_scale == Scale::Log { " (logarithmic)" } else { "" };
    let mut words = format!("Panel \"{title}\": {y_label}{log} against {x_label}.");
    for line in series {
        let finite = || line.points.iter().filter(|p| p.0.is_finite() && p.1.is_finite());
        if let (Some(first), Some(last)) = (finite().next(), finite().next_back()) {
            let _ = write!(words, " {} goes from {:.4} to {:.4}.", line.label, first.1, last.1);
        }
    }
    for reference in references.iter().filter(|r| r.y.is_finite()) {
        let _ = write!(words, " Reference {} at {:.4}.", reference.label, reference.y);
    }
    words
}
