//! Figures as PNG: their SVG drawn with a font that is built in, so that a picture is the same on every machine.

use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg;

use padmm_commands::chart::Figure;

/// The largest side of a picture, in pixels.
const MAX_SIDE: f64 = 16_384.0;

/// Why there is no picture.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum FigureError {
    /// A size that cannot be drawn.
    #[error(
        "a picture of {width} × {height} pixels cannot be drawn; both sides must lie between 1 and {MAX_SIDE}, so choose another size or scale"
    )]
    Size {
        /// Width in pixels, at the scale that was asked for.
        width: f64,
        /// Height in pixels, at the scale that was asked for.
        height: f64,
    },
    #[error("the figure `{title}` could not be drawn: {reason}")]
    Render { title: String, reason: String },
}

/// The figure as a PNG file of `scale` times its width and height.
///
/// # Errors
/// A scale or a size that no picture has, or more pixels than can be held.
pub(crate) fn to_png(figure: &Figure, scale: f64) -> Result<Vec<u8>, FigureError> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use padmm_commands::chart::{Panel, Series, Style};

    fn figure() -> Figure {
        let series = Series::new("line", (0..9).map(|k| (f64::from(k), 2.0)).collect(), Style::nth(0));
        let panel = Panel { title: "Panel".into(), series: vec![series], ..Panel::default() };
        Figure {
            title: "Title".into(),
            width: 700.0,
            height: 400.0,
            panels: vec![panel],
            ..Figure::default()
        }
    }

    #[test]
    fn pictures_have_their_size_and_some_ink() {
        let png = to_png(&figure(), 1.5).unwrap();
        assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
        let side = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
        assert_eq!((side(16), side(20)), (1050, 600));
        assert!(png.len() > 5_000, "a picture with text is not empty: {} bytes", png.len());
        assert_eq!(png, to_png(&figure(), 1.5).unwrap());
    }

    #[test]
    fn impossible_sizes_are_errors() {
        for scale in [0.0, -1.0, f64::NAN, 1e9] {
            let error = to_png(&figure(), scale).unwrap_err();
            assert!(matches!(error, FigureError::Size { .. }));
            assert!(error.to_string().contains("choose another size"), "{error}");
        }
    }
}
