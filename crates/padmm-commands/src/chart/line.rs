//! From a series to its line, markers and shaded range, cut at the plot's lower and upper ends.

#![allow(clippy::float_cmp, reason = "what is meant is equality to the bit")]

use std::fmt::Write;

use crate::chart::Series;
use crate::chart::draw::Area;
use crate::chart::scale::Axis;
use crate::chart::text::coordinate;

/// About how far apart markers stand on a line.
const MARKER_DISTANCE: f64 = 46.0;

type Point = (f64, f64);

/// A plot's frame and axes: from values to pixels.
pub(crate) struct Plot<'a> {
    pub(crate) frame: Area,
    pub(crate) x: &'a Axis,
    pub(crate) y: &'a Axis,
}

impl Plot<'_> {
    pub(crate) fn at_x(&self, value: f64) -> Option<f64> {
        self.x.place(value).map(|share| self.frame.left + share * self.frame.width)
    }

    /// The place of `value`, moved to the nearer end of the axis if it lies beyond.
    pub(crate) fn at_y(&self, value: f64) -> Option<f64> {
        self.y.place(value).map(|share| self.to_y(share))
    }

    /// The place of `value` if it lies on the axis.
    pub(crate) fn inside_y(&self, value: f64) -> Option<f64> {
        self.y.share(value).filter(|share| (0.0..=1.0).contains(share)).map(|share| self.to_y(share))
    }

    pub(crate) fn at(&self, (x, y): Point) -> Option<Point> {
        Some((self.at_x(x)?, self.at_y(y)?))
    }

    pub(crate) fn bottom(&self) -> f64 {
        self.frame.top + self.frame.height
    }

    pub(crate) fn right(&self) -> f64 {
        self.frame.left + self.frame.width
    }

    fn to_y(&self, share: f64) -> f64 {
        self.frame.top + (1.0 - share) * self.frame.height
    }

    /// `(x in pixels, y as a share of the axis)`, where the share may lie beyond 0 and 1.
    fn half_way(&self, (x, y): Point) -> Option<Point> {
        Some((self.at_x(x)?, self.y.share(y)?))
    }
}

/// The piece of a segment with y between 0 and 1.
fn cut(from: Point, to: Point) -> Option<(Point, Point)> {
    let inside = |p: Point| (0.0..=1.0).contains(&p.1);
    if inside(from) && inside(to) {
        return Some((from, to));
    }
    if (from.1 < 0.0 && to.1 < 0.0) || (from.1 > 1.0 && to.1 > 1.0) {
        return None;
    }
    let at = |end: Point| if inside(end) { end } else { crossing(from, to, end.1.clamp(0.0, 1.0)) };
    Some((at(from), at(to)))
}

/// Where a segment has the height `y`.
fn crossing(from: Point, to: Point, y: f64) -> Point {
    (from.0 + (y - from.1) / (to.1 - from.1) * (to.0 - from.0), y)
}

/// The points in pixels, cut where one has no place and where the line leaves the plot.
fn runs(plot: &Plot<'_>, points: &[Point]) -> Vec<Vec<Point>> {
    let mut runs: Vec<Vec<Point>> = vec![Vec::new()];
    let mut last: Option<Point> = None;
    for &point in points {
        let here = plot.half_way(point);
        match (last, here) {
            (_, None) => runs.push(Vec::new()),
            (None, Some(p)) if (0.0..=1.0).contains(&p.1) => push(&mut runs, p),
            (None, Some(_)) => {}
            (Some(before), Some(p)) => match cut(before, p) {
                None => runs.push(Vec::new()),
                Some((start, end)) => {
                    if start != before {
                        runs.push(vec![start]);
                    }
                    push(&mut runs, end);
                    if end != p {
                        runs.push(Vec::new());
                    }
                }
            },
        }
        last = here;
    }
    runs.retain(|run| !run.is_empty());
    for point in runs.iter_mut().flatten() {
        point.1 = plot.to_y(point.1);
    }
    runs
}

fn push(runs: &mut [Vec<Point>], point: Point) {
    runs.last_mut().expect("there is always a run").push(point);
}

fn path(points: impl Iterator<Item = Point>) -> String {
    let mut out = String::new();
    for (k, (x, y)) in points.enumerate() {
        let _ = write!(out, "{}{} {}", if k == 0 { "M" } else { "L" }, coordinate(x), coordinate(y));
    }
    out
}

/// The part of a polygon on one side of the height `y`.
fn half_plane(polygon: &[Point], y: f64, is_inside: impl Fn(f64) -> bool) -> Vec<Point> {
    let mut out = Vec::with_capacity(polygon.len());
    for (k, &to) in polygon.iter().enumerate() {
        let from = polygon[(k + polygon.len() - 1) % polygon.len()];
        if is_inside(from.1) != is_inside(to.1) {
            out.push(crossing(from, to, y));
        }
        if is_inside(to.1) {
            out.push(to);
        }
    }
    out
}

/// The tag that everything of one series stands in, so that a page can hide and recolour it.
fn open_group(out: &mut String, series: &Series, index: usize) {
    let _ = writeln!(out, "<g class=\"series {}\" data-series=\"{index}\">", series.style.class());
}

/// The shaded range, cut where a point or an end of the range has no place; below a logarithmic axis it reaches
/// down to its end.
pub(crate) fn draw_band(out: &mut String, plot: &Plot<'_>, series: &Series, index: usize) {
    let Some(band) = &series.band else { return };
    let mut pieces: Vec<Vec<(f64, f64, f64)>> = vec![Vec::new()];
    for (&point, &(low, high)) in series.points.iter().zip(band) {
        let floor = if low.is_finite() { Some(plot.y.share(low).unwrap_or(0.0)) } else { None };
        match (plot.half_way(point), floor, plot.y.share(high)) {
            (Some((x, _)), Some(low), Some(high)) => {
                pieces.last_mut().expect("there is always a piece").push((x, low, high));
            }
            _ => pieces.push(Vec::new()),
        }
    }
    open_group(out, series, index);
    for piece in pieces.iter().filter(|p| p.len() > 1) {
        let upper = piece.iter().map(|&(x, _, high)| (x, high));
        let lower = piece.iter().rev().map(|&(x, low, _)| (x, low));
        let whole: Vec<Point> = upper.chain(lower).collect();
        let visible = half_plane(&half_plane(&whole, 0.0, |y| y >= 0.0), 1.0, |y| y <= 1.0);
        if visible.is_empty() {
            continue;
        }
        let _ = writeln!(
            out,
            "<path class=\"band\" d=\"{}Z\" fill=\"{}\" fill-opacity=\"0.17\"/>",
            path(visible.iter().map(|&(x, share)| (x, plot.to_y(share)))),
            series.style.hex()
        );
    }
    out.push_str("</g>\n");
}

/// The line, and markers at regular distances that differ from line to line.
pub(crate) fn draw_line(out: &mut String, plot: &Plot<'_>, series: &Series, index: usize, n_series: usize) {
    open_group(out, series, index);
    let pieces = runs(plot, &series.points);
    for run in pieces.iter().filter(|run| run.len() > 1) {
        let _ = writeln!(
            out,
            "<path class=\"line\" d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\" stroke-linejoin=\"round\"{}/>",
            path(run.iter().copied()),
            series.style.hex(),
            series.style.dash_attribute()
        );
    }
    // Few points are all marked: then they are the measurements, and the line only joins them.
    let is_sparse = series.points.len() <= 12;
    let mut next = plot.frame.left + MARKER_DISTANCE * (index as f64 + 0.5) / n_series.max(1) as f64;
    for &(x, y) in &series.points {
        let (Some(px), Some(py)) = (plot.at_x(x), plot.inside_y(y)) else { continue };
        let is_alone = pieces.iter().any(|run| run.len() == 1 && run[0].0 == px);
        if is_sparse || is_alone || px >= next {
            let _ = writeln!(out, "{}", series.style.marker(px, py));
            next = px + MARKER_DISTANCE;
        }
    }
    out.push_str("</g>\n");
}

/// Places about three pixels apart along all lines.
pub(crate) fn line_pixels(plot: &Plot<'_>, series: &[Series]) -> Vec<Point> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::{Scale, Style};

    #[test]
    fn lines_end_where_they_leave_the_plot() {
        let x = Axis::new(Scale::Linear, [0.0, 4.0].into_iter(), 0.0, 4);
        let y = Axis::new(Scale::Linear, [0.0, 1.0].into_iter(), 0.0, 4);
        let frame = Area { left: 0.0, top: 0.0, width: 400.0, height: 100.0 };
        let plot = Plot { frame, x: &x, y: &y };
        // Through the top and back, and from below to above in one step.
        let points = [(0.0, 0.5), (1.0, 1.5), (2.0, 0.5), (3.0, -0.5), (4.0, 1.5)];
        let expected = vec![
            vec![(0.0, 50.0), (50.0, 0.0)],
            vec![(150.0, 0.0), (200.0, 50.0), (250.0, 100.0)],
            vec![(325.0, 100.0), (375.0, 0.0)],
        ];
        assert_eq!(runs(&plot, &points), expected);
        assert_eq!(plot.inside_y(1.2), None);
        assert_eq!(plot.at_y(1.2), Some(0.0));

        let band = vec![(-1.0, 2.0), (0.25, 2.0)];
        let series = Series::new("s", vec![(0.0, 0.5), (4.0, 0.5)], Style::nth(0)).with_band(band);
        let mut out = String::new();
        draw_band(&mut out, &plot, &series, 3);
        assert!(out.contains("data-series=\"3\""), "{out}");
        // The lower edge rises from −1 to 0.25 and enters the plot at four fifths of the way.
        assert!(out.contains("400 75") && out.contains("320 100") && out.contains("0 100"), "{out}");
        assert!(!out.contains(" -"), "nothing above the plot: {out}");
    }
}
