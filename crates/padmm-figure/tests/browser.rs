//! The demonstration page as a reader's browser shows it.

use std::path::PathBuf;

use padmm_browser::{Browser, Media, Tab};
use padmm_figure::Figure;
use padmm_figure::html::{Block, Page, Section};
use serde_json::{Value, json};
use tempfile::TempDir;

// The page is the example's, so that what is tested can be looked at.
#[allow(dead_code)]
#[path = "../examples/page.rs"]
mod page;

const FIRST: &str = "#convergence .panel:nth-child(1)";

/// The demonstration page as a file.
fn written() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("page.html");
    std::fs::write(&path, page::demo().to_html()).unwrap();
    (folder, path)
}

fn count(tab: &mut Tab<'_>, selector: &str) -> Value {
    tab.evaluate(&format!("document.querySelectorAll({}).length", Value::from(selector)))
}

/// How many lines with points are on the screen.
fn visible_lines(tab: &mut Tab<'_>, figure: &str) -> Value {
    tab.evaluate(&format!(
        "[...document.querySelectorAll('{figure} svg.plot .series:not(.off) path.line')]
         .filter((p) => p.getTotalLength() > 20 && p.getBoundingClientRect().width > 20).length"
    ))
}

/// Moves the pointer over the first panel, to where its axis says `label`, and returns the lines of the box.
fn hover(tab: &mut Tab<'_>, label: &str) -> Vec<String> {
    let (_, y) = tab.middle_of(&format!("{FIRST} svg.plot"));
    let x = tab.evaluate(&format!(
        "(() => {{ const tick = [...document.querySelectorAll('{FIRST} svg.plot text')].find((t) => t.textContent === '{label}');
         const box = tick.getBoundingClientRect(); return box.left + box.width / 2; }})()"
    ));
    tab.move_to((x.as_f64().unwrap(), y));
    tab.wait_for(&format!("document.querySelector('{FIRST} .tip b')?.textContent.endsWith(' {label}')"));
    let rows = tab.evaluate(&format!(
        "[...document.querySelector('{FIRST} .tip').children].map((row) => [...row.childNodes].map((n) => n.textContent).join(' ').trim())"
    ));
    rows.as_array().unwrap().iter().map(|row| row.as_str().unwrap().to_owned()).collect()
}

/// What the box must say of the first panel at round 20, from the figure's own numbers.
fn expected(figure: &Figure, label: &str) -> String {
    let series = figure.panels[0].series.iter().find(|s| s.label == label).unwrap();
    let (k, point) = series.points.iter().enumerate().find(|(_, p)| p.0 == 20.0).unwrap();
    match &series.band {
        // Two digits of the deviation, all of which are 0.017 or 0.0040 in this panel.
        Some(band) if band[k].1 - point.1 > 0.01 => format!("{label} {:.3} ± 0.017", point.1),
        Some(_) => format!("{label} {:.4} ± 0.0040", point.1),
        None => format!("{label} {:.5}", point.1),
    }
}

#[test]
fn every_chart_is_drawn_and_nothing_is_requested() {
    let Some(mut browser) = Browser::start() else { return };
    let (_folder, path) = written();
    for width in [1280, 400] {
        let mut tab = browser.open(&path, width, 900);
        for (id, figure) in [("#convergence", page::convergence()), ("#trade-off", page::trade_off())] {
            assert_eq!(count(&mut tab, &format!("{id} svg.plot")), figure.panels.len());
            let n_series: usize = figure.panels.iter().map(|p| p.series.len()).sum();
            assert_eq!(visible_lines(&mut tab, id), n_series, "{id} at {width}");
            let n_bands = figure.panels.iter().flat_map(|p| &p.series).filter(|s| s.band.is_some()).count();
            assert_eq!(count(&mut tab, &format!("{id} path.band")), n_bands, "{id} at {width}");
            // What is saved is what the library writes.
            for (kind, content) in [("svg", figure.to_svg()), ("csv", figure.to_csv())] {
                let saved = tab.evaluate(&format!(
                    "(() => {{ const link = document.querySelector('{id} a[download$=\".{kind}\"]');
                     return [link.download, decodeURIComponent(link.href.slice(link.href.indexOf(',') + 1))]; }})()"
                ));
                assert_eq!(saved[0], format!("{}.{kind}", &id[1..]));
                assert_eq!(saved[1], content, "{id} as {kind}");
            }
        }
        assert_eq!(tab.problems(), [""; 0], "at {width}");
        assert_eq!(tab.requests().len(), 1, "the page itself: {:?}", tab.requests());
    }
}

#[test]
fn values_are_shown_under_the_pointer_and_by_keys() {
    let Some(mut browser) = Browser::start() else { return };
    let (_folder, path) = written();
    let figure = page::convergence();
    let mut tab = browser.open(&path, 1280, 900);
    let wanted: Vec<String> = ["releases", "smoothed model", "without noise"]
        .iter()
        .map(|label| expected(&figure, label))
        .collect();
    let rows = hover(&mut tab, "20");
    assert_eq!((rows[0].as_str(), &rows[1..]), ("round: 20", &wanted[..]));
    assert_eq!(count(&mut tab, &format!("{FIRST} .dot")), 3);

    tab.move_to((2.0, 2.0));
    tab.wait_for(&format!("document.querySelector('{FIRST} .tip').hidden"));
    assert_eq!(count(&mut tab, ".crosshair"), 0);

    tab.evaluate(&format!("document.querySelector('{FIRST} svg.plot').focus()"));
    let title = format!("document.querySelector('{FIRST} .tip b').textContent");
    for (key, wanted) in
        [("End", "round: 50"), ("ArrowLeft", "round: 49"), ("Home", "round: 1"), ("ArrowRight", "round: 2")]
    {
        tab.press(key);
        assert_eq!(tab.evaluate(&title), wanted, "after {key}");
    }
    tab.press("Escape");
    assert_eq!(tab.evaluate(&format!("document.querySelector('{FIRST} .tip').hidden")), true);
    assert_eq!(tab.problems(), [""; 0]);
}

#[test]
fn legends_hide_and_show_lines() {
    let Some(mut browser) = Browser::start() else { return };
    let (_folder, path) = written();
    let figure = page::convergence();
    let mut tab = browser.open(&path, 1280, 900);
    let pressed = |tab: &mut Tab<'_>, figure: &str| {
        tab.evaluate(&format!(
            "[...document.querySelectorAll('{figure} .key')].map((k) => k.getAttribute('aria-pressed') === 'true')"
        ))
    };
    // A legend of one panel: the first line goes, and with it its value.
    tab.click("#convergence [data-key='0'] .key", 1);
    assert_eq!(visible_lines(&mut tab, "#convergence"), 6);
    assert_eq!(pressed(&mut tab, "#convergence"), json!([false, true, true, true, true, true, true]));
    let rows = hover(&mut tab, "20");
    assert_eq!(rows[1..], [expected(&figure, "smoothed model"), expected(&figure, "without noise")]);
    tab.evaluate("document.querySelector(\"#convergence [data-key='0'] .key\").focus()");
    tab.press("Enter");
    assert_eq!(visible_lines(&mut tab, "#convergence"), 7);

    // A legend of all panels; two clicks leave one line in each.
    tab.click("#trade-off [data-key='3'] .key", 1);
    assert_eq!(visible_lines(&mut tab, "#trade-off"), 21);
    tab.click("#trade-off [data-key='2'] .key", 2);
    assert_eq!(visible_lines(&mut tab, "#trade-off"), 3);
    tab.click("#trade-off .tools button", 1);
    assert_eq!(visible_lines(&mut tab, "#trade-off"), 24);
    tab.evaluate("document.querySelector(\"#trade-off [data-key='5'] .only\").focus()");
    tab.press("Enter");
    assert_eq!(visible_lines(&mut tab, "#trade-off"), 3);
    assert_eq!(visible_lines(&mut tab, "#convergence"), 7, "figures do not touch each other");
    assert_eq!(tab.problems(), [""; 0]);
}

#[test]
fn wide_windows_have_the_columns_of_the_figure() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("page.html");
    let panels = page::trade_off().panels;
    let figure = |n: usize| {
        let panels = panels.iter().cycle().take(n).cloned().collect();
        Block::Figure(Box::new(Figure::new("t", panels)), format!("of-{n}"))
    };
    let section = Section { title: "Many".into(), blocks: [1, 2, 4, 5, 6].map(figure).to_vec() };
    let page = Page { sections: vec![section], ..Page::default() };
    std::fs::write(&path, page.to_html()).unwrap();
    let mut tab = browser.open(&path, 1900, 900);
    for (n, columns, rows) in [(1, 1, 1), (2, 2, 1), (4, 2, 2), (5, 3, 2), (6, 3, 2)] {
        let sides = tab.evaluate(&format!(
            "(() => {{ const boxes = [...document.querySelectorAll('#of-{n} svg.plot')].map((s) => s.getBoundingClientRect());
             return ['left', 'top'].map((side) => new Set(boxes.map((b) => Math.round(b[side]))).size); }})()"
        ));
        assert_eq!(sides, json!([columns, rows]), "{n} panels");
    }
}

#[test]
fn narrow_windows_scroll_down_only() {
    let Some(mut browser) = Browser::start() else { return };
    let (_folder, path) = written();
    let mut tab = browser.open(&path, 400, 800);
    assert_eq!(tab.evaluate("document.documentElement.scrollWidth"), 400);
    assert_eq!(
        tab.evaluate(
            "document.querySelector('.table').scrollWidth > document.querySelector('.table').clientWidth"
        ),
        true
    );
    let lefts = tab.evaluate(
        "[...document.querySelectorAll('svg.plot')].map((s) => Math.round(s.getBoundingClientRect().left))",
    );
    let lefts = lefts.as_array().unwrap();
    assert!(lefts.iter().all(|left| *left == lefts[0]), "one below the other: {lefts:?}");
    for label in ["10", "30", "50"] {
        hover(&mut tab, label);
        let place = tab.evaluate(&format!(
            "(() => {{ const box = document.querySelector('{FIRST} .tip').getBoundingClientRect(); return [box.left, box.right]; }})()"
        ));
        let (left, right) = (place[0].as_f64().unwrap(), place[1].as_f64().unwrap());
        assert!(left >= 0.0 && right <= 400.0, "the box at {label} reaches from {left} to {right}");
        assert_eq!(tab.evaluate("document.documentElement.scrollWidth"), 400);
    }
    assert_eq!(tab.problems(), [""; 0]);
}

#[test]
fn paper_and_readers_without_scripts_get_everything() {
    let Some(mut browser) = Browser::start() else { return };
    let (_folder, path) = written();
    let mut tab = browser.open_without_scripts(&path, 1280, 900);
    assert_eq!(visible_lines(&mut tab, "#convergence"), 7);
    assert_eq!(count(&mut tab, "button"), 0, "nothing that would not work");
    assert_eq!(count(&mut tab, "#trade-off .legend li"), 8);
    drop(tab);

    let mut tab = browser.open(&path, 1280, 900);
    let colours = "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.querySelector('.plot .c6 .line')).stroke]";
    assert_eq!(tab.evaluate(colours), json!(["rgb(255, 255, 255)", "rgb(0, 0, 0)"]));
    tab.show_as(Media::Dark);
    assert_eq!(tab.evaluate(colours), json!(["rgb(21, 25, 29)", "rgb(232, 232, 232)"]));
    tab.show_as(Media::Print);
    assert_eq!(tab.evaluate(colours), json!(["rgb(255, 255, 255)", "rgb(0, 0, 0)"]));
    let is_shown = "['.tools', '.only', '.command button', '.legend', 'svg.plot'].map((s) => document.querySelector(s).getClientRects().length > 0)";
    assert_eq!(tab.evaluate(is_shown), json!([false, false, false, true, true]));
    assert_eq!(&tab.pdf()[..5], b"%PDF-");
}
