//! Charts as SVG text, and the same picture as PNG.
//!
//! A [`Figure`] is a few [`Panel`]s with lines in them, made to be read in print, on a screen, and in black and
//! white: colours that everybody can tell apart, a dash and a marker for each line, legends outside the data.
//! The output depends on the figure alone, byte for byte; the font of the PNG is built in.
//!
//! Values that have no place on their axis (not finite, or not positive on a logarithmic one) leave a gap.

mod draw;
mod panel;
mod png;
mod scale;
mod style;
mod text;

pub use png::FigureError;
pub use scale::Scale;
pub use style::{Dash, Style};

/// A picture of one or more panels.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// One line in bold on top.
    pub title: String,
    /// What and how, in grey below the title; may be empty.
    pub subtitle: String,
    /// The charts, row by row.
    pub panels: Vec<Panel>,
    /// How many panels stand beside each other.
    pub columns: usize,
    /// Width in pixels at scale 1.
    pub width: f64,
    /// Height in pixels at scale 1.
    pub height: f64,
    /// Small print at the bottom; may be empty.
    pub caption: String,
}

/// One chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    /// What is shown.
    pub title: String,
    /// What runs to the right.
    pub x_label: String,
    /// What runs upwards.
    pub y_label: String,
    /// How x is laid out.
    pub x_scale: Scale,
    /// How y is laid out.
    pub y_scale: Scale,
    /// The lines, the first at the bottom.
    pub series: Vec<Series>,
    /// Values to compare with.
    pub references: Vec<HLine>,
    /// Small print below the panel; may be empty.
    pub note: String,
}

/// One line of a chart.
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
    /// What the value is.
    pub label: String,
    /// The value.
    pub y: f64,
}

impl Series {
    /// A line without a band.
    pub fn new(label: impl Into<String>, points: Vec<(f64, f64)>, style: Style) -> Self {
        Series { label: label.into(), points, band: None, style }
    }

    /// The same line with a shaded range, one `(low, high)` for each point.
    #[must_use]
    pub fn with_band(mut self, band: Vec<(f64, f64)>) -> Self {
        self.band = Some(band);
        self
    }
}

impl Figure {
    /// The figure as the text of an SVG file.
    pub fn to_svg(&self) -> String {
        draw::svg(self)
    }

    /// The figure as a PNG file of `scale` times its width and height.
    ///
    /// # Errors
    /// A scale or a size that no picture has, or more pixels than can be held.
    pub fn to_png(&self, scale: f64) -> Result<Vec<u8>, FigureError> {
        png::render(self, scale)
    }
}
