//! Colours, dashes and markers that stay apart without colour.

use crate::chart::text::coordinate;

/// The colours of Okabe and Ito (2008), which people with any colour vision can tell apart, the ones with most
/// contrast on white first.
const PALETTE: [&str; 8] =
    ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#B8A800"];

/// How a line is broken up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dash {
    /// An unbroken line, the default.
    #[default]
    Solid,
    /// Long strokes with gaps.
    Dashed,
    /// Dots with small gaps.
    Dotted,
    /// Strokes and dots in turn.
    DashDot,
}

/// How a line is told apart from the others, also without colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Which colour of the palette, and with it which marker; counted around.
    pub colour: usize,
    /// How the line is broken up.
    pub dash: Dash,
}

impl Style {
    /// The `index`-th of a sequence of styles that differ in colour, marker and dash.
    pub fn nth(index: usize) -> Self {
        let dash = [Dash::Solid, Dash::Dashed, Dash::DashDot, Dash::Dotted][index % 4];
        Self { colour: index, dash }
    }

    pub(crate) fn hex(self) -> &'static str {
        PALETTE[self.colour % PALETTE.len()]
    }

    /// A class by which a page can give the palette other colours, such as on a dark background.
    pub(crate) fn class(self) -> String {
        format!("c{}", self.colour % PALETTE.len())
    }

    /// The attribute that draws the dash, with a space in front, or nothing.
    pub(crate) fn dash_attribute(self) -> &'static str {
        match self.dash {
            Dash::Solid => "",
            Dash::Dashed => " stroke-dasharray=\"7 3.5\"",
            Dash::Dotted => " stroke-dasharray=\"1.6 3\"",
            Dash::DashDot => " stroke-dasharray=\"8 3 1.6 3\"",
        }
    }

    /// A marker centred at `(x, y)`, filled, with a white rim that keeps it apart from lines below it.
    pub(crate) fn marker(self, x: f64, y: f64) -> String {
        let r = 3.4;
        let polygon = |corners: &[(f64, f64)]| {
            let points: Vec<String> = corners
                .iter()
                .map(|(dx, dy)| format!("{},{}", coordinate(x + r * dx), coordinate(y + r * dy)))
                .collect();
            format!("<polygon points=\"{}\"", points.join(" "))
        };
        let shape = match self.colour % PALETTE.len() {
            0 => format!("<circle cx=\"{}\" cy=\"{}\" r=\"{r}\"", coordinate(x), coordinate(y)),
            1 => polygon(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
            2 => polygon(&[(0.0, -1.2), (1.1, 0.85), (-1.1, 0.85)]),
            3 => polygon(&[(0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)]),
            4 => polygon(&[(0.0, 1.2), (1.1, -0.85), (-1.1, -0.85)]),
            5 => polygon(&[(-1.2, -0.6), (1.2, -0.6), (1.2, 0.6), (-1.2, 0.6)]),
            6 => polygon(&[(-1.1, -1.1), (1.1, -1.1), (-1.1, 1.1), (1.1, 1.1)]),
            _ => polygon(&[(-0.6, -1.2), (0.6, -1.2), (0.6, 1.2), (-0.6, 1.2)]),
        };
        format!("{shape} class=\"marker\" fill=\"{}\" stroke=\"#fff\" stroke-width=\"0.9\"/>", self.hex())
    }
}
