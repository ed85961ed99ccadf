//! One chart: axes, grid, lines, reference lines and legend.

use std::fmt::Write;

use crate::chart::draw::{Anchor, Area, GREY, INK, panel_title, text};
use crate::chart::legend::Legend;
use crate::chart::line::{Plot, draw_band, draw_line, line_pixels};
use crate::chart::scale::{Axis, Scale};
use crate::chart::text::{coordinate, escape, width, wrap};
use crate::chart::{HLine, Panel};

const TICK_SIZE: f64 = 10.0;
const LABEL_SIZE: f64 = 11.0;

/// Class, colour and width of a line that is no data. A page may recolour the class.
type Stroke = (&'static str, &'static str, f64);
const GRID: Stroke = ("grid", "#e6e6e6", 0.7);
const MINOR_GRID: Stroke = ("grid minor", "#f4f4f4", 0.6);
const TICK: Stroke = ("axis", GREY, 0.8);
const AXIS: Stroke = ("axis", GREY, 0.9);

/// Which texts around the plot are drawn with it; what is not stands elsewhere, in a shared legend or in a page.
#[derive(Clone, Copy)]
pub(crate) struct Parts {
    pub(crate) title_and_note: bool,
    pub(crate) legend: bool,
}

/// A panel with its axes and texts measured, before it has a place.
pub(crate) struct Layout<'a> {
    panel: &'a Panel,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    title: Vec<String>,
    note: Vec<String>,
    legend: Legend<'a>,
    left: f64,
}

impl<'a> Layout<'a> {
    /// Measures `panel` for the given room.
    pub(crate) fn new(panel: &'a Panel, room: f64, height: f64, parts: Parts) -> Self {
        let points = || panel.series.iter().flat_map(|s| &s.points);
        let bands = panel.series.iter().flat_map(|s| s.band.iter().flatten()).flat_map(|b| [b.0, b.1]);
        let references = panel.references.iter().map(|r| r.y);
        let x_values = points().filter(|p| panel.y_scale.admits(p.1)).map(|p| p.0);
        let y_values = points().filter(|p| panel.x_scale.admits(p.0)).map(|p| p.1);
        let x = Axis::new(panel.x_scale, x_values, 0.0, (room / 65.0) as usize);
        // A reference line at the bottom gets room for its label below.
        let pad = if panel.references.is_empty() { 0.05 } else { (34.0 / height).clamp(0.05, 0.2) };
        let y_target = (height / 55.0) as usize;
        let y = match fixed_range(panel) {
            Some((low, high)) => Axis::new(panel.y_scale, [low, high].into_iter(), 0.0, y_target),
            None => Axis::new(panel.y_scale, y_values.chain(bands).chain(references), pad, y_target),
        };
        let widest = y.ticks.iter().map(|t| width(&t.label, TICK_SIZE)).fold(0.0, f64::max);
        let y_label = if panel.y_label.is_empty() { 0.0 } else { 19.0 };
        let words = |text: &'a str| if parts.title_and_note { text } else { "" };
        Layout {
            title: wrap(words(&panel.title), 12.5 * 1.12, room),
            note: wrap(words(&panel.note), 9.5, room),
            left: (widest + 8.0 + y_label).min(0.6 * room),
            legend: Legend::new(if parts.legend { std::slice::from_ref(panel) } else { &[] }, room),
            panel,
            x,
            y,
        }
    }

    /// Height of what stands above the plot.
    pub(crate) fn above(&self) -> f64 {
        let multiplier = if self.y.multiplier.is_empty() { 0.0 } else { 17.0 };
        16.0 * self.title.len() as f64 + self.legend.height() + multiplier + 10.0
    }

    /// Height of what stands below the plot.
    pub(crate) fn below(&self) -> f64 {
        let x_label = if self.panel.x_label.is_empty() && self.x.multiplier.is_empty() { 0.0 } else { 17.0 };
        let note = if self.note.is_empty() { 0.0 } else { 13.0 * self.note.len() as f64 + 6.0 };
        20.0 + x_label + note
    }

    /// The rectangle between the axes for a panel in `area` with its plot between `above` and `below`.
    pub(crate) fn frame(&self, area: Area, above: f64, below: f64) -> Area {
        // The last tick's label may stick out to the right by half its width.
        let overhang = self.x.ticks.last().map_or(0.0, |t| width(&t.label, TICK_SIZE) / 2.0);
        Area {
            left: area.left + self.left,
            top: area.top + above,
            width: (area.width - self.left - overhang).max(20.0),
            height: (area.height - above - below).max(20.0),
        }
    }

    /// Draws the panel into `area`, its plot between `above` and `below`.
    pub(crate) fn draw(&self, out: &mut String, area: Area, above: f64, below: f64) {
        let frame = self.frame(area, above, below);
        let plot = Plot { frame, x: &self.x, y: &self.y };
        out.push_str("<g class=\"panel\">\n");
        panel_title(out, (area.left, area.top + 11.0), &self.title);
        self.legend.draw(out, area.left, area.top + 16.0 * self.title.len() as f64 + 12.0);
        self.draw_axes(out, &plot, area);
        let nothing = self.panel.series.iter().flat_map(|s| &s.points).all(|&p| plot.at(p).is_none());
        if nothing {
            let middle = (frame.left + frame.width / 2.0, frame.top + frame.height / 2.0);
            text(out, middle, LABEL_SIZE, GREY, Anchor::Middle, "no data");
        }
        for (index, series) in self.panel.series.iter().enumerate() {
            draw_band(out, &plot, series, index);
        }
        self.draw_references(out, &plot);
        for (index, series) in self.panel.series.iter().enumerate() {
            draw_line(out, &plot, series, index, self.panel.series.len());
        }
        self.draw_reference_labels(out, &plot);
        out.push_str("</g>\n");
    }

    /// Grid, ticks, axis lines and their labels.
    fn draw_axes(&self, out: &mut String, plot: &Plot<'_>, area: Area) {
        let Area { left, top, .. } = plot.frame;
        let (right, bottom) = (plot.right(), plot.bottom());
        let line = |out: &mut String, from: (f64, f64), to: (f64, f64), (class, colour, thick): Stroke| {
            let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(coordinate);
            let _ = writeln!(
                out,
                "<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\" stroke=\"{colour}\" stroke-width=\"{thick}\"/>"
            );
        };
        let mut taken = f64::NEG_INFINITY;
        for tick in &self.x.ticks {
            let Some(x) = plot.at_x(tick.value) else { continue };
            let half = width(&tick.label, TICK_SIZE) / 2.0;
            let labelled = !tick.label.is_empty() && x - half > taken + 4.0;
            if labelled {
                line(out, (x, top), (x, bottom), GRID);
                text(out, (x, bottom + 15.0), TICK_SIZE, INK, Anchor::Middle, &tick.label);
                taken = x + half;
            }
            line(out, (x, bottom), (x, bottom + if labelled { 4.0 } else { 2.5 }), TICK);
        }
        for tick in &self.y.ticks {
            let Some(y) = plot.at_y(tick.value) else { continue };
            let labelled = !tick.label.is_empty();
            if labelled {
                line(out, (left, y), (right, y), GRID);
                text(out, (left - 7.0, y + 3.6), TICK_SIZE, INK, Anchor::End, &tick.label);
            } else {
                line(out, (left, y), (right, y), MINOR_GRID);
            }
            line(out, (left - if labelled { 4.0 } else { 2.5 }, y), (left, y), TICK);
        }
        line(out, (left, bottom), (right, bottom), AXIS);
        line(out, (left, top), (left, bottom), AXIS);
        if !self.y.multiplier.is_empty() {
            text(out, (left, top - 9.0), TICK_SIZE, INK, Anchor::Middle, &self.y.multiplier);
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
            let Some(y) = plot.inside_y(reference.y) else { continue };
            let dash = ["5 3", "2 2.5", "9 3 2 3"][index % 3];
            let _ = writeln!(
                out,
                "<line class=\"reference\" x1=\"{}\" y1=\"{y}\" x2=\"{}\" y2=\"{y}\" stroke=\"#404040\" stroke-width=\"1.1\" stroke-dasharray=\"{dash}\"/>",
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
        let lines: Vec<f64> = self.panel.references.iter().filter_map(|r| plot.inside_y(r.y)).collect();
        for &y in &lines {
            ink.extend(
                (0..=(plot.frame.width / 3.0) as usize).map(|k| (plot.frame.left + 3.0 * k as f64, y)),
            );
        }
        for HLine { label, y } in &self.panel.references {
            let Some(y) = plot.inside_y(*y) else { continue };
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
                "<text class=\"halo\" x=\"{x}\" y=\"{y}\" font-size=\"9.5\" fill=\"none\" stroke=\"#fff\" stroke-width=\"2.6\" stroke-linejoin=\"round\" aria-hidden=\"true\">{words}</text>",
                x = coordinate(place.left),
                y = coordinate(place.top + 8.3),
                words = escape(label),
            );
            text(out, (place.left, place.top + 8.3), 9.5, "#333333", Anchor::Start, label);
            taken.push(place);
        }
    }
}

/// The range that the panel asks for, if its axis can have it.
fn fixed_range(panel: &Panel) -> Option<(f64, f64)> {
    let admits = |v: f64| Scale::admits(panel.y_scale, v);
    panel.y_range.filter(|&(low, high)| low < high && admits(low) && admits(high))
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
