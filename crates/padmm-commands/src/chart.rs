//! Charts as SVG text, and their numbers as CSV.
//!
//! A [`Figure`] is a few [`Panel`]s with lines in them, made to be read in print, on a screen, and in black and
//! white: colours that everybody can tell apart, a dash and a marker for each line, legends outside the data.
//! The output depends on the figure alone, byte for byte.
//!
//! Values that have no place on their axis (not finite, or not positive on a logarithmic one) leave a gap.

mod csv;
pub(crate) mod draw;
pub(crate) mod legend;
mod line;
pub(crate) mod panel;
pub(crate) mod scale;
mod style;
pub(crate) mod text;

pub use scale::Scale;
pub use style::{Dash, Style};

/// A picture of one or more panels.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// One line in bold on top.
    pub title: String,
    /// What and how, in grey below the title; may be empty.
    pub subtitle: String,
    /// The charts, row by row, `columns` to a row.
    pub panels: Vec<Panel>,
    /// How many panels stand beside each other.
    pub columns: usize,
    /// Width in pixels at scale 1.
    pub width: f64,
    /// Height in pixels at scale 1.
    pub height: f64,
    /// Small print at the bottom; may be empty.
    pub caption: String,
    /// One legend on top in place of one in each panel: for panels that show the same few lines.
    pub shared_legend: bool,
}

/// One chart, with axes of its own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    /// What is shown, in bold above the frame.
    pub title: String,
    /// What runs to the right, with its unit.
    pub x_label: String,
    /// What runs upwards, with its unit.
    pub y_label: String,
    /// Whether equal steps to the right are differences or ratios.
    pub x_scale: Scale,
    /// Whether equal steps upwards are differences or ratios.
    pub y_scale: Scale,
    /// The lines, the first at the bottom.
    pub series: Vec<Series>,
    /// Horizontal lines to compare the series with.
    pub references: Vec<HLine>,
    /// The ends of the upward axis; lines are cut there. Without it, or if the axis cannot have these ends, the
    /// axis holds all values.
    pub y_range: Option<(f64, f64)>,
    /// Small print below the panel; may be empty.
    pub note: String,
}

/// One line of a chart, with its points.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name in the legend; an empty one is left out there.
    pub label: String,
    /// Its points, in the order in which they are joined.
    pub points: Vec<(f64, f64)>,
    /// A shaded range `(low, high)` around each point, such as mean ± one standard deviation.
    pub band: Option<Vec<(f64, f64)>>,
    /// Its colour, marker and dash.
    pub style: Style,
}

/// A horizontal line at a value to compare with.
#[derive(Clone, Debug, PartialEq)]
pub struct HLine {
    /// What the value is, in the words of a legend.
    pub label: String,
    /// The value, on the panel's upward axis.
    pub y: f64,
}

impl Series {
    /// A line without a band; [`Series::band`] can be set afterwards.
    pub fn new(label: impl Into<String>, points: Vec<(f64, f64)>, style: Style) -> Self {
        Self { label: label.into(), points, band: None, style }
    }

    /// The same line with a shaded range, one `(low, high)` for each point.
    #[must_use]
    pub fn with_band(mut self, band: Vec<(f64, f64)>) -> Self {
        self.band = Some(band);
        self
    }
}

impl Default for Figure {
    fn default() -> Self {
        Self {
            title: String::new(),
            subtitle: String::new(),
            panels: Vec::new(),
            columns: 1,
            width: 640.0,
            height: 430.0,
            caption: String::new(),
            shared_legend: false,
        }
    }
}

impl Figure {
    /// A figure of a size that fits its panels, up to three in a row, with one legend if all panels have the same.
    pub fn new(title: impl Into<String>, panels: Vec<Panel>) -> Self {
        let columns = match panels.len() {
            0 | 1 => 1,
            2 | 4 => 2,
            _ => 3,
        };
        let rows = panels.len().div_ceil(columns).max(1);
        let all = legend::entries(&panels);
        let is_shared = |p| legend::entries(std::slice::from_ref(p)) == all;
        Self {
            title: title.into(),
            columns,
            width: [640.0, 900.0, 1180.0][columns - 1],
            height: 110.0 + 320.0 * rows as f64,
            shared_legend: panels.len() > 1 && panels.iter().all(is_shared),
            panels,
            ..Self::default()
        }
    }

    /// The numbers of all lines as CSV, one row a point, with the columns `panel,label,x,mean,low,high`. The last two are the
    /// shaded range, empty where there is none. Numbers are the shortest that read back as the same.
    pub fn to_csv(&self) -> String {
        csv::write(self)
    }

    /// The figure as the text of an SVG file.
    pub fn to_svg(&self) -> String {
        draw::svg(self)
    }
}
