//! One chart: axes, grid, lines, reference lines and legend.

use std::fmt::Write;

use crate::draw::{Anchor, Area, GREY, INK, flow, panel_title, text};
use crate::scale::Axis;
use crate::text::{coordinate, escape, width, wrap};
use crate::{HLine, Panel, Series};

const TICK_SIZE: f64 = 10.0;
const LABEL_SIZE: f64 = 11.0;
const LEGEND_SIZE: f64 = 10.5;
const LEGEND_LINE: f64 = 16.0;
/// Length of the piece of line in a legend.
const SAMPLE: f64 = 36.0;
/// About how far apart markers stand on a line.
const MARKER_DISTANCE: f64 = 46.0;

/// A panel with its axes and texts measured, before it has a place.
pub(crate) struct Layout<'a> {
    panel: &'a Panel,
    x: Axis,
    y: Axis,
    title: Vec<String>,
    note: Vec<String>,
    legend: Vec<&'a Series>,
    legend_lines: usize,
    legend_places: Vec<(f64, usize)>,
    left: f64,
}

/// A plot's frame and axes: from values to pixels.
struct Plot<'a> {
    frame: Area,
    x: &'a Axis,
    y: &'a Axis,
}

impl Plot<'_> {
    fn at_x(&self, value: f64) -> Option<f64> {
        self.x.place(value).map(|share| self.frame.left + share * self.frame.width)
    }

    fn at_y(&self, value: f64) -> Option<f64> {
        self.y.place(value).map(|share| self.frame.top + (1.0 - share) * self.frame.height)
    }

    fn at(&self, (x, y): (f64, f64)) -> Option<(f64, f64)> {
        Some((self.at_x(x)?, self.at_y(y)?))
    }

    fn bottom(&self) -> f64 {
        self.frame.top + self.frame.height
    }

    fn right(&self) -> f64 {
        self.frame.left + self.frame.width
    }
}

impl<'a> Layout<'a> {
    /// Measures `panel` for the given room.
    pub(crate) fn new(panel: &'a Panel, room: f64, height: f64) -> Self {
        let drawn =
            |s: &&Series| s.points.iter().any(|p| panel.x_scale.admits(p.0) && panel.y_scale.admits(p.1));
        let points = || panel.series.iter().flat_map(|s| &s.points);
        let bands = panel.series.iter().flat_map(|s| s.band.iter().flatten()).flat_map(|b| [b.0, b.1]);
        let references = panel.references.iter().map(|r| r.y);
        let x_values = points().filter(|p| panel.y_scale.admits(p.1)).map(|p| p.0);
        let y_values = points().filter(|p| panel.x_scale.admits(p.0)).map(|p| p.1);
        let x = Axis::new(panel.x_scale, x_values, 0.0, (room / 65.0) as usize);
        // A reference line at the bottom gets room for its label below.
        let pad = if panel.references.is_empty() { 0.05 } else { (34.0 / height).clamp(0.05, 0.2) };
        let y_target = (height / 55.0) as usize;
        let y = Axis::new(panel.y_scale, y_values.chain(bands).chain(references), pad, y_target);
        let legend: Vec<&Series> =
            panel.series.iter().filter(drawn).filter(|s| !s.label.is_empty()).collect();
        let labels: Vec<&str> = legend.iter().map(|s| s.label.as_str()).collect();
        let (legend_lines, legend_places) = flow(&labels, LEGEND_SIZE, SAMPLE, room);
        let widest = y.ticks.iter().map(|t| width(&t.label, TICK_SIZE)).fold(0.0, f64::max);
        let y_label = if panel.y_label.is_empty() { 0.0 } else { 19.0 };
        Layout {
            title: wrap(&panel.title, 12.5 * 1.12, room),
            note: wrap(&panel.note, 9.5, room),
            left: (widest + 8.0 + y_label).min(0.6 * room),
            panel,
            x,
            y,
            legend,
            legend_lines,
            legend_places,
        }
    }

    /// Height of what stands above the plot.
    pub(crate) fn above(&self) -> f64 {
        let multiplier = if self.y.multiplier.is_empty() { 0.0 } else { 14.0 };
        16.0 * self.title.len() as f64 + LEGEND_LINE * self.legend_lines as f64 + multiplier + 8.0
    }

    /// Height of what stands below the plot.
    pub(crate) fn below(&self) -> f64 {
        let x_label = if self.panel.x_label.is_empty() && self.x.multiplier.is_empty() { 0.0 } else { 17.0 };
        let note = if self.note.is_empty() { 0.0 } else { 13.0 * self.note.len() as f64 + 6.0 };
        20.0 + x_label + note
    }

    /// Draws the panel into `area`, its plot between `above` and `below`.
    pub(crate) fn draw(&self, out: &mut String, area: Area, above: f64, below: f64) {
        // The last tick's label may stick out to the right by half its width.
        let overhang = self.x.ticks.last().map_or(0.0, |t| width(&t.label, TICK_SIZE) / 2.0);
        let frame = Area {
            left: area.left + self.left,
            top: area.top + above,
            width: (area.width - self.left - overhang).max(20.0),
            height: (area.height - above - below).max(20.0),
        };
        let plot = Plot { frame, x: &self.x, y: &self.y };
        out.push_str("<g>\n");
        panel_title(out, (area.left, area.top + 11.0), &self.title);
        self.draw_legend(out, area.left, area.top + 16.0 * self.title.len() as f64 + 12.0);
        self.draw_axes(out, &plot, area);
        let nothing = self.panel.series.iter().flat_map(|s| &s.points).all(|&p| plot.at(p).is_none());
        if nothing {
            let middle = (frame.left + frame.width / 2.0, frame.top + frame.height / 2.0);
            text(out, middle, LABEL_SIZE, GREY, Anchor::Middle, "no data");
        }
        for series in &self.panel.series {
            draw_band(out, &plot, series);
        }
        self.draw_references(out, &plot);
        for (index, series) in self.panel.series.iter().enumerate() {
            draw_line(out, &plot, series, index, self.panel.series.len());
        }
        self.draw_reference_labels(out, &plot);
        out.push_str("</g>\n");
    }

    fn draw_legend(&self, out: &mut String, left: f64, top: f64) {
        for (series, &(x, line)) in self.legend.iter().zip(&self.legend_places) {
            let (x, y) = (left + x, top + LEGEND_LINE * line as f64);
            let _ = writeln!(
                out,
                "<line x1=\"{}\" y1=\"{y}\" x2=\"{}\" y2=\"{y}\" stroke=\"{}\" stroke-width=\"1.8\"{}/>{}",
                coordinate(x),
                coordinate(x + SAMPLE),
                series.style.hex(),
                series.style.dash_attribute(),
                series.style.marker(x + SAMPLE / 2.0, y),
                y = coordinate(y),
            );
            text(out, (x + SAMPLE + 6.0, y + 3.8), LEGEND_SIZE, INK, Anchor::Start, &series.label);
        }
    }

    /// Grid, ticks, axis lines and their labels.
    fn draw_axes(&self, out: &mut String, plot: &Plot<'_>, area: Area) {
        let Area { left, top, .. } = plot.frame;
        let (right, bottom) = (plot.right(), plot.bottom());
        let line = |out: &mut String, from: (f64, f64), to: (f64, f64), colour: &str, thick: f64| {
            let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(coordinate);
            let _ = writeln!(
                out,
                "<line x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" stroke=\"{colour}\" stroke-width=\"{thick}\"/>"
            );
        };
        let mut taken = f64::NEG_INFINITY;
        for tick in &self.x.ticks {
            let Some(x) = plot.at_x(tick.value) else { continue };
            let half = width(&tick.label, TICK_SIZE) / 2.0;
            let labelled = !tick.label.is_empty() && x - half > taken + 4.0;
            if labelled {
                line(out, (x, top), (x, bottom), "#e6e6e6", 0.7);
                text(out, (x, bottom + 15.0), TICK_SIZE, INK, Anchor::Middle, &tick.label);
                taken = x + half;
            }
            line(out, (x, bottom), (x, bottom + if labelled { 4.0 } else { 2.5 }), GREY, 0.8);
        }
        for tick in &self.y.ticks {
            let Some(y) = plot.at_y(tick.value) else { continue };
            let labelled = !tick.label.is_empty();
            if labelled {
                line(out, (left, y), (right, y), "#e6e6e6", 0.7);
                text(out, (left - 7.0, y + 3.6), TICK_SIZE, INK, Anchor::End, &tick.label);
            } else {
                line(out, (left, y), (right, y), "#f4f4f4", 0.6);
            }
            line(out, (left - if labelled { 4.0 } else { 2.5 }, y), (left, y), GREY, 0.8);
        }
        line(out, (left, bottom), (right, bottom), GREY, 0.9);
        line(out, (left, top), (left, bottom), GREY, 0.9);
        if !self.y.multiplier.is_empty() {
            text(out, (left, top - 5.0), TICK_SIZE, INK, Anchor::Middle, &self.y.multiplier);
        }
        let x_words = format!("{} {}", self.panel.x_label, self.x.multiplier);
        let middle = left + plot.frame.width / 2.0;
        text(out, (middle, bottom + 32.0), LABEL_SIZE, INK, Anchor::Middle, x_words.trim());
        if !self.panel.y_label.is_empty() {
            let (x, y) = (area.left + 10.0, top + plot.frame.height / 2.0);
            let _ = writeln!(
                out,
                "<text transform=\"translate({} {}) rotate(-90)\" font-size=\"{LABEL_SIZE}\" fill=\"{INK}\" text-anchor=\"middle\">{}</text>",
                coordinate(x),
                coordinate(y),
                escape(&self.panel.y_label)
            );
        }
        for (k, words) in self.note.iter().enumerate() {
            let y = bottom + self.below() - 13.0 * (self.note.len() - k) as f64 + 9.75;
            text(out, (area.left, y), 9.5, GREY, Anchor::Start, words);
        }
    }

    fn draw_references(&self, out: &mut String, plot: &Plot<'_>) {
        for (index, reference) in self.panel.references.iter().enumerate() {
            let Some(y) = plot.at_y(reference.y) else { continue };
            let dash = ["5 3", "2 2.5", "9 3 2 3"][index % 3];
            let _ = writeln!(
                out,
                "<line x1=\"{}\" y1=\"{y}\" x2=\"{}\" y2=\"{y}\" stroke=\"#404040\" stroke-width=\"1.1\" stroke-dasharray=\"{dash}\"/>",
                coordinate(plot.frame.left),
                coordinate(plot.right()),
                y = coordinate(y),
            );
        }
    }

    /// Each label beside its line, above or below, where it covers least.
    fn draw_reference_labels(&self, out: &mut String, plot: &Plot<'_>) {
        let mut taken: Vec<Area> = Vec::new();
        let mut ink = line_pixels(plot, &self.panel.series);
        let lines: Vec<f64> = self.panel.references.iter().filter_map(|r| plot.at_y(r.y)).collect();
        for &y in &lines {
            ink.extend(
                (0..=(plot.frame.width / 3.0) as usize).map(|k| (plot.frame.left + 3.0 * k as f64, y)),
            );
        }
        for HLine { label, y } in &self.panel.references {
            let Some(y) = plot.at_y(*y) else { continue };
            let size = (width(label, 9.5), 10.0);
            // From the right end to the left one; the first of equals is taken.
            let (leftmost, rightmost) = (plot.frame.left + 6.0, plot.right() - size.0 - 4.0);
            let lefts: Vec<f64> =
                (0..=12).map(|k| rightmost + (leftmost - rightmost) * f64::from(k) / 12.0).collect();
            let tops = [y - size.1 - 3.0, y + 5.0];
            let places = lefts.iter().flat_map(|&left| {
                tops.iter().map(move |&top| Area { left, top, width: size.0, height: size.1 })
            });
            let inside = |a: &Area| a.top >= plot.frame.top && a.top + a.height <= plot.bottom();
            let cost = |a: &Area| {
                let covered = ink.iter().filter(|p| contains(a, **p)).count();
                let over = taken.iter().filter(|t| overlap(a, t)).count();
                covered + 1000 * over
            };
            let Some(place) = places.filter(inside).min_by_key(cost) else { continue };
            let _ = write!(
                out,
                "<text x=\"{x}\" y=\"{y}\" font-size=\"9.5\" fill=\"none\" stroke=\"#fff\" stroke-width=\"2.6\" stroke-linejoin=\"round\" aria-hidden=\"true\">{words}</text>",
                x = coordinate(place.left),
                y = coordinate(place.top + 8.3),
                words = escape(label),
            );
            text(out, (place.left, place.top + 8.3), 9.5, "#333333", Anchor::Start, label);
            taken.push(place);
        }
    }
}

fn contains(area: &Area, (x, y): (f64, f64)) -> bool {
    x >= area.left && x <= area.left + area.width && y >= area.top && y <= area.top + area.height
}

fn overlap(a: &Area, b: &Area) -> bool {
    a.left < b.left + b.width
        && b.left < a.left + a.width
        && a.top < b.top + b.height
        && b.top < a.top + a.height
}

/// Places about three pixels apart along all lines.
fn line_pixels(plot: &Plot<'_>, series: &[Series]) -> Vec<(f64, f64)> {
    let mut pixels = Vec::new();
    for run in series.iter().flat_map(|s| runs(plot, &s.points)) {
        pixels.extend(run.first());
        for pair in run.windows(2) {
            let (dx, dy) = (pair[1].0 - pair[0].0, pair[1].1 - pair[0].1);
            let steps = (dx.hypot(dy) / 3.0).ceil().max(1.0);
            pixels.extend((1..=steps as usize).map(|k| {
                let share = k as f64 / steps;
                (pair[0].0 + share * dx, pair[0].1 + share * dy)
            }));
        }
    }
    pixels
}

/// The points in pixels, cut where one has no place.
fn runs(plot: &Plot<'_>, points: &[(f64, f64)]) -> Vec<Vec<(f64, f64)>> {
    let mut runs = vec![Vec::new()];
    for &point in points {
        match plot.at(point) {
            Some(pixel) => runs.last_mut().expect("there is always a run").push(pixel),
            None => runs.push(Vec::new()),
        }
    }
    runs.retain(|run| !run.is_empty());
    runs
}

/// A path through `points`.
fn path(points: impl Iterator<Item = (f64, f64)>) -> String {
    let mut out = String::new();
    for (k, (x, y)) in points.enumerate() {
        let _ = write!(out, "{}{} {}", if k == 0 { "M" } else { "L" }, coordinate(x), coordinate(y));
    }
    out
}

/// The shaded range, cut where a point or an end of the range has no place; below a logarithmic axis it reaches
/// down to its end.
fn draw_band(out: &mut String, plot: &Plot<'_>, series: &Series) {
    let Some(band) = &series.band else { return };
    let mut pieces: Vec<Vec<(f64, f64, f64)>> = vec![Vec::new()];
    for (&(x, y), &(low, high)) in series.points.iter().zip(band) {
        let floor = if low.is_finite() { Some(plot.at_y(low).unwrap_or(plot.bottom())) } else { None };
        match (plot.at((x, y)), floor, plot.at_y(high)) {
            (Some((x, _)), Some(low), Some(high)) => {
                pieces.last_mut().expect("there is always a piece").push((x, low, high));
            }
            _ => pieces.push(Vec::new()),
        }
    }
    for piece in pieces.iter().filter(|p| p.len() > 1) {
        let upper = piece.iter().map(|&(x, _, high)| (x, high));
        let lower = piece.iter().rev().map(|&(x, low, _)| (x, low));
        let _ = writeln!(
            out,
            "<path class=\"band\" d=\"{}Z\" fill=\"{}\" fill-opacity=\"0.17\"/>",
            path(upper.chain(lower)),
            series.style.hex()
        );
    }
}

/// The line, and markers at regular distances that differ from line to line.
fn draw_line(out: &mut String, plot: &Plot<'_>, series: &Series, index: usize, n_series: usize) {
    let mut next = plot.frame.left + MARKER_DISTANCE * (index as f64 + 0.5) / n_series.max(1) as f64;
    for run in runs(plot, &series.points) {
        if run.len() > 1 {
            let _ = writeln!(
                out,
                "<path class=\"line\" d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\" stroke-linejoin=\"round\"{}/>",
                path(run.iter().copied()),
                series.style.hex(),
                series.style.dash_attribute()
            );
        }
        for &(x, y) in &run {
            if run.len() == 1 || x >= next {
                let _ = writeln!(out, "{}", series.style.marker(x, y));
                next = x + MARKER_DISTANCE;
            }
        }
    }
}
