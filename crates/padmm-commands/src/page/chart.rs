//! A figure in a page: legend, panels, links to its files, and the numbers for the script.

use std::fmt::Write;

use super::data::{self, data_uri};
use super::paragraph;
use crate::chart::draw::{Area, panel_description};
use crate::chart::legend::{Entry, SAMPLE, draw_sample, entries, entry};
use crate::chart::panel::{Layout, Parts};
use crate::chart::text::{coordinate, escape};
use crate::chart::{Figure, Panel};

/// The lines that one entry of a legend stands for have the same key.
pub(super) struct Keys<'a> {
    /// All entries; the key is the index.
    entries: Vec<Entry<'a>>,
    /// Of each panel, where its own entries start; with one legend for all, they start at 0.
    starts: Vec<usize>,
    is_shared: bool,
}

impl<'a> Keys<'a> {
    fn new(figure: &'a Figure) -> Self {
        if figure.shared_legend {
            let starts = vec![0; figure.panels.len()];
            return Keys { entries: entries(&figure.panels), starts, is_shared: true };
        }
        let mut keys = Keys { entries: Vec::new(), starts: Vec::new(), is_shared: false };
        for panel in &figure.panels {
            keys.starts.push(keys.entries.len());
            keys.entries.extend(entries(std::slice::from_ref(panel)));
        }
        keys
    }

    /// Which keys the legend of a panel has.
    fn of_panel(&self, panel: usize) -> std::ops::Range<usize> {
        let end = if self.is_shared { None } else { self.starts.get(panel + 1).copied() };
        self.starts[panel]..end.unwrap_or(self.entries.len())
    }

    /// The key of a series; none if the legend does not show it.
    pub(super) fn of_series(&self, figure: &Figure, panel: usize, series: usize) -> Option<usize> {
        let wanted = entry(&figure.panels[panel], &figure.panels[panel].series[series])?;
        self.of_panel(panel).find(|&key| self.entries[key] == wanted)
    }
}

/// A panel measured for a page, where title, legend and note are text of the page.
pub(super) struct Plotted<'a> {
    pub(super) layout: Layout<'a>,
    pub(super) area: Area,
}

impl<'a> Plotted<'a> {
    fn new(panel: &'a Panel, columns: usize) -> Self {
        // At this size the texts in the plot have the size of small print, on a narrow screen as on a wide one.
        let (width, height) = if columns >= 3 { (336.0, 272.0) } else { (450.0, 300.0) };
        let parts = Parts { title_and_note: false, legend: false };
        let layout = Layout::new(panel, width, height, parts);
        Plotted { layout, area: Area { left: 0.0, top: 0.0, width, height } }
    }

    /// The rectangle between the axes.
    pub(super) fn frame(&self) -> Area {
        self.layout.frame(self.area, self.layout.above(), self.layout.below())
    }

    fn write(&self, out: &mut String, panel: &Panel) {
        let _ = writeln!(
            out,
            "<div class=\"plot-box\"><svg class=\"plot\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">",
            coordinate(self.area.width),
            coordinate(self.area.height),
            escape(&panel_description(panel))
        );
        self.layout.draw(out, self.area, self.layout.above(), self.layout.below());
        out.push_str("</svg></div>\n");
    }
}

/// Writes the figure with `anchor` as its anchor and the stem of its files.
pub(super) fn write(out: &mut String, figure: &Figure, anchor: &str) {
    let keys = Keys::new(figure);
    let columns = figure.columns.clamp(1, figure.panels.len().max(1));
    let plots: Vec<Plotted<'_>> = figure.panels.iter().map(|p| Plotted::new(p, columns)).collect();
    let title = escape(&figure.title);
    let label = if title.is_empty() { anchor } else { &title };
    let _ = writeln!(out, "<figure class=\"chart\" id=\"{anchor}\" aria-label=\"{label}\">\n<figcaption>");
    if !title.is_empty() {
        let _ = writeln!(out, "<h3>{title}</h3>");
    }
    paragraph(out, "chart-lead", &figure.subtitle);
    out.push_str("</figcaption>\n");
    if keys.is_shared {
        write_legend(out, &keys.entries, 0, "Legend");
    }
    let _ = writeln!(out, "<div class=\"panels of-{}\">", columns.min(3));
    for (index, (panel, plot)) in figure.panels.iter().zip(&plots).enumerate() {
        out.push_str("<div class=\"panel\">\n");
        let _ = writeln!(out, "<p class=\"panel-title\">{}</p>", escape(&panel.title));
        if !keys.is_shared {
            let own = keys.of_panel(index);
            let label = format!("Legend of {}", panel.title);
            write_legend(out, &keys.entries[own.clone()], own.start, &label);
        }
        plot.write(out, panel);
        let _ = writeln!(out, "<p class=\"panel-note\">{}</p>\n</div>", escape(&panel.note));
    }
    out.push_str("</div>\n");
    paragraph(out, "chart-note", &figure.caption);
    let _ = writeln!(
        out,
        "<p class=\"tools\"><a download=\"{anchor}.svg\" href=\"{}\">Download SVG</a> <a download=\"{anchor}.csv\" href=\"{}\">Download CSV</a></p>",
        data_uri("image/svg+xml", &figure.to_svg()),
        data_uri("text/csv;charset=utf-8", &figure.to_csv())
    );
    let _ = writeln!(
        out,
        "<script type=\"application/json\">{}</script>\n</figure>",
        data::json(figure, &plots, &keys)
    );
}

/// The entries of a legend, the first with the key `first`.
fn write_legend(out: &mut String, entries: &[Entry<'_>], first: usize, label: &str) {
    let _ = writeln!(out, "<ul class=\"legend\" aria-label=\"{}\">", escape(label));
    for (k, entry) in entries.iter().enumerate() {
        let _ = write!(
            out,
            "<li data-key=\"{}\"><svg class=\"swatch\" viewBox=\"0 0 {SAMPLE} 12\" width=\"{SAMPLE}\" height=\"12\" aria-hidden=\"true\">",
            first + k
        );
        draw_sample(out, entry.style, 0.0, 6.0);
        let _ = writeln!(out, "</svg><span>{}</span></li>", escape(entry.label));
    }
    out.push_str("</ul>\n");
}
