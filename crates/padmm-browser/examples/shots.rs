//! Pictures of a page with charts, to be looked at: `cargo run --release -p padmm-browser --example shots -- PAGE.html DIR`.

use std::path::PathBuf;

use padmm_browser::{Browser, Media};

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(page), Some(folder)) = (arguments.next(), arguments.next()) else {
        panic!("two arguments are needed: a page and a folder");
    };
    let Some(mut browser) = Browser::start() else { return Ok(()) };
    let shots = [
        ("wide", 1280, Media::Light),
        ("dark", 1280, Media::Dark),
        ("middle", 800, Media::Light),
        ("narrow", 400, Media::Light),
    ];
    for (name, width, media) in shots {
        let mut tab = browser.open(&page, width, 900);
        tab.show_as(media);
        std::fs::write(folder.join(format!("{name}.png")), tab.screenshot())?;
    }
    for (name, width) in [("hover", 1280), ("hover-narrow", 400)] {
        let mut tab = browser.open(&page, width, 900);
        let middle = tab.middle_of("svg.plot");
        tab.move_to(middle);
        std::fs::write(folder.join(format!("{name}.png")), tab.screenshot())?;
    }
    std::fs::write(folder.join("print.pdf"), browser.open(&page, 1280, 900).pdf())
}
