//! Legends: of one panel, or one for all panels of a figure.

use std::fmt::Write;

use crate::chart::draw::{Anchor, INK, text};
use crate::chart::text::{coordinate, width};
use crate::chart::{Panel, Series, Style};

const SIZE: f64 = 10.5;
const LINE: f64 = 16.0;
/// Length of the piece of line in a legend.
pub(crate) const SAMPLE: f64 = 36.0;

/// What the legend says of one line; lines with the same name and look share it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Entry<'a> {
    pub(crate) label: &'a str,
    pub(crate) style: Style,
}

pub(crate) struct Legend<'a> {
    entries: Vec<Entry<'a>>,
    /// Of each entry: how far to the right, and on which line.
    places: Vec<(f64, usize)>,
    lines: usize,
}

/// The entry of a series, if it has a name and a point to show.
pub(crate) fn entry<'a>(panel: &Panel, series: &'a Series) -> Option<Entry<'a>> {
    let has_place = |p: &(f64, f64)| panel.x_scale.admits(p.0) && panel.y_scale.admits(p.1);
    let is_shown = !series.label.is_empty() && series.points.iter().any(has_place);
    is_shown.then_some(Entry { label: &series.label, style: series.style })
}

/// The entries of all `panels`, each once, in the order in which they first occur.
pub(crate) fn entries(panels: &[Panel]) -> Vec<Entry<'_>> {
    let mut found = Vec::new();
    for panel in panels {
        for entry in panel.series.iter().filter_map(|s| entry(panel, s)) {
            if !found.contains(&entry) {
                found.push(entry);
            }
        }
    }
    found
}

/// A short piece of line with its marker, centred at height `y`.
pub(crate) fn draw_sample(out: &mut String, style: Style, x: f64, y: f64) {
    let _ = writeln!(
        out,
        "<g class=\"series {}\"><line class=\"sample\" x1=\"{}\" y1=\"{y}\" x2=\"{}\" y2=\"{y}\" stroke=\"{}\" stroke-width=\"1.8\"{}/>{}</g>",
        style.class(),
        coordinate(x),
        coordinate(x + SAMPLE),
        style.hex(),
        style.dash_attribute(),
        style.marker(x + SAMPLE / 2.0, y),
        y = coordinate(y),
    );
}

impl<'a> Legend<'a> {
    /// The legend of `panels` in lines no wider than `room`.
    pub(crate) fn new(panels: &'a [Panel], room: f64) -> Self {
        let entries = entries(panels);
        let (mut x, mut line) = (0.0, 0);
        let mut places = Vec::with_capacity(entries.len());
        for entry in &entries {
            let length = SAMPLE + 6.0 + width(entry.label, SIZE);
            if x > 0.0 && x + length > room {
                (x, line) = (0.0, line + 1);
            }
            places.push((x, line));
            x += length + 14.0;
        }
        let lines = if entries.is_empty() { 0 } else { line + 1 };
        Legend { entries, places, lines }
    }

    pub(crate) fn height(&self) -> f64 {
        LINE * self.lines as f64
    }

    /// Draws the entries, the middle of the first line at height `top`.
    pub(crate) fn draw(&self, out: &mut String, left: f64, top: f64) {
        for (entry, &(x, line)) in self.entries.iter().zip(&self.places) {
            let (x, y) = (left + x, top + LINE * line as f64);
            draw_sample(out, entry.style, x, y);
            text(out, (x + SAMPLE + 6.0, y + 3.8), SIZE, INK, Anchor::Start, entry.label);
        }
    }
}
