//! The SVG as pixels, with the built-in font.

use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg;

use crate::Figure;

/// The largest side of a picture, in pixels.
const MAX_SIDE: f64 = 16_384.0;

/// Why there is no picture.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum FigureError {
    /// A size that cannot be drawn.
    #[error(
        "a picture of {width} × {height} pixels cannot be drawn; both sides must lie between 1 and {MAX_SIDE}, so choose another size or scale"
    )]
    Size {
        /// Width in pixels.
        width: f64,
        /// Height in pixels.
        height: f64,
    },
    /// The renderer refused the SVG.
    #[error("the figure `{title}` could not be drawn: {reason}")]
    Render {
        /// The figure's title.
        title: String,
        /// The renderer's words.
        reason: String,
    },
}

/// Draws the figure's SVG at `scale`.
pub(crate) fn render(figure: &Figure, scale: f64) -> Result<Vec<u8>, FigureError> {
    let (width, height) = ((figure.width * scale).round(), (figure.height * scale).round());
    let fits = |side: f64| (1.0..=MAX_SIDE).contains(&side);
    if !(scale > 0.0 && fits(width) && fits(height)) {
        return Err(FigureError::Size { width, height });
    }
    let failed = |reason: String| FigureError::Render { title: figure.title.clone(), reason };
    let mut fonts = usvg::fontdb::Database::new();
    fonts.load_font_data(dejavu::sans::regular().to_vec());
    fonts.load_font_data(dejavu::sans::bold().to_vec());
    fonts.set_sans_serif_family("DejaVu Sans");
    let options = usvg::Options {
        fontdb: Arc::new(fonts),
        font_family: "DejaVu Sans".to_owned(),
        ..Default::default()
    };
    let tree = usvg::Tree::from_str(&figure.to_svg(), &options).map_err(|e| failed(e.to_string()))?;
    let mut pixels = Pixmap::new(width as u32, height as u32).ok_or(FigureError::Size { width, height })?;
    resvg::render(&tree, Transform::from_scale(scale as f32, scale as f32), &mut pixels.as_mut());
    pixels.encode_png().map_err(|e| failed(e.to_string()))
}
