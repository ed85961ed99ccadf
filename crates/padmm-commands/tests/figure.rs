//! What must be true of every figure, read back from its own SVG.

use padmm_commands::chart::{Dash, Figure, HLine, Panel, Scale, Series, Style};

fn figure(panels: Vec<Panel>) -> Figure {
    Figure {
        title: "Title".into(),
        subtitle: "Subtitle".into(),
        columns: 2,
        width: 700.0,
        height: 400.0,
        caption: "Caption".into(),
        panels,
        ..Figure::default()
    }
}

fn panel(points: Vec<(f64, f64)>, y_scale: Scale) -> Panel {
    let band = points.iter().map(|p| (p.1 - 0.5, p.1 + 0.5)).collect();
    Panel {
        title: "Panel".into(),
        x_label: "x".into(),
        y_label: "y".into(),
        y_scale,
        series: vec![Series::new("line", points, Style::nth(0)).with_band(band)],
        references: vec![HLine { label: "reference".into(), y: 2.0 }],
        ..Panel::default()
    }
}

/// Every coordinate of every path, line, text, circle and polygon.
fn coordinates(svg: &str) -> Vec<(f64, f64)> {
    let document = roxmltree::Document::parse(svg).unwrap_or_else(|e| panic!("{e}: {svg}"));
    let mut found = Vec::new();
    for node in document.descendants().filter(roxmltree::Node::is_element) {
        let number = |name: &str| node.attribute(name).map(|v| v.parse::<f64>().unwrap());
        for (x, y) in [("x", "y"), ("x1", "y1"), ("x2", "y2"), ("cx", "cy")] {
            found.extend(number(x).zip(number(y)));
        }
        let list = node.attribute("d").or(node.attribute("points")).unwrap_or_default();
        let numbers: Vec<f64> = list
            .split(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-'))
            .filter(|t| !t.is_empty())
            .map(|t| t.parse().unwrap())
            .collect();
        found.extend(numbers.chunks(2).map(|pair| (pair[0], pair[1])));
    }
    found
}

fn assert_sound(figure: &Figure) -> String {
    let svg = figure.to_svg();
    for word in ["NaN", "inf", "nan"] {
        assert!(!svg.contains(&format!("\"{word}")), "{word} in {svg}");
    }
    for (x, y) in coordinates(&svg) {
        assert!((0.0..=figure.width).contains(&x) && (0.0..=figure.height).contains(&y), "{x}, {y}: {svg}");
    }
    assert_eq!(svg, figure.to_svg(), "the same figure gives the same bytes");
    svg
}

fn count(svg: &str, class: &str) -> usize {
    svg.matches(&format!("class=\"{class}\"")).count()
}

#[test]
fn points_lie_inside_and_bands_are_drawn() {
    for scale in [Scale::Linear, Scale::Log] {
        let points = (1..60).map(|k| (f64::from(k), 1e3 * 0.8f64.powi(k))).collect();
        let svg = assert_sound(&figure(vec![panel(points, scale), Panel::default()]));
        assert_eq!((count(&svg, "line"), count(&svg, "band")), (1, 1));
        assert!(svg.contains("no data"), "the empty panel says so");
    }
}

#[test]
fn values_without_a_place_leave_a_gap() {
    let nan = f64::NAN;
    let points =
        vec![(1.0, 3.0), (2.0, 4.0), (3.0, nan), (4.0, 5.0), (5.0, 1.0), (6.0, f64::INFINITY), (7.0, 2.0)];
    let svg = assert_sound(&figure(vec![panel(points, Scale::Linear)]));
    assert_eq!(count(&svg, "line"), 2, "two pieces, and a lone point as a marker");

    let points = vec![(1.0, 0.0), (2.0, 10.0), (3.0, 100.0), (4.0, -1.0), (5.0, 5.0), (6.0, 0.2)];
    let svg = assert_sound(&figure(vec![panel(points, Scale::Log)]));
    assert_eq!(count(&svg, "line"), 2);
}

#[test]
fn fixed_ranges_cut_lines_and_impossible_ones_are_ignored() {
    for scale in [Scale::Linear, Scale::Log] {
        // Up and down through the upper end, three times.
        let points = (0..7).map(|k| (f64::from(k), if k % 2 == 0 { 1.0 } else { 100.0 })).collect();
        let whole = panel(points, scale);
        let cut = Panel { y_range: Some((0.5, 10.0)), ..whole.clone() };
        let svg = assert_sound(&figure(vec![cut.clone()]));
        assert_eq!(count(&svg, "line"), 4, "the tips are missing");
        assert!(svg.contains(">10<") && !svg.contains(">100<"), "{svg}");
        assert!(
            !assert_sound(&figure(vec![Panel { y_range: Some((5.0, 9.0)), ..cut }])).contains(">reference<")
        );
        let plain = assert_sound(&figure(vec![whole.clone()]));
        for range in [(1.0, 1.0), (2.0, 1.0), (f64::NAN, 1.0), (0.0, f64::INFINITY)] {
            let odd = Panel { y_range: Some(range), ..whole.clone() };
            assert_eq!(figure(vec![odd]).to_svg(), plain, "{range:?}");
        }
    }
}

#[test]
fn odd_input_is_tolerated() {
    let extremes = vec![(0.0, 1e300), (1.0, -1e300), (2.0, 1e-300)];
    let constant = vec![(5.0, 7.0); 3];
    let alone = vec![(5.0, 7.0)];
    let empty = Panel { series: vec![Series::new("empty", vec![], Style::nth(2))], ..Panel::default() };
    for scale in [Scale::Linear, Scale::Log] {
        for points in [&extremes, &constant, &alone, &vec![], &vec![(f64::NAN, f64::NAN)]] {
            let mut panel = panel(points.clone(), scale);
            panel.x_scale = scale;
            panel.references.push(HLine { label: "lost".into(), y: f64::NAN });
            assert_sound(&figure(vec![panel, empty.clone()]));
        }
    }
    assert_sound(&figure(vec![]));
    assert_sound(&Figure { columns: 0, ..figure(vec![empty]) });
}

#[test]
fn text_is_escaped() {
    let mut panel = panel(vec![(0.0, 1.0), (1.0, 2.0)], Scale::Linear);
    panel.title = "a < b & \"c\"".into();
    panel.series[0].label = "<script>".into();
    panel.references[0].label = "x > 'y'".into();
    let svg = assert_sound(&Figure { title: "R&D \u{0}".into(), ..figure(vec![panel]) });
    let document = roxmltree::Document::parse(&svg).unwrap();
    let texts: Vec<&str> = document.descendants().filter_map(|n| n.text()).collect();
    for wanted in ["a < b & \"c\"", "<script>", "x > 'y'", "R&D \\u{0}"] {
        assert!(texts.contains(&wanted), "{wanted} in {texts:?}");
    }
    assert!(document.descendants().all(|n| n.tag_name().name() != "script"));
}

#[test]
fn readers_who_do_not_see_are_told() {
    let svg = figure(vec![panel(vec![(0.0, 1.0), (1.0, 2.0)], Scale::Log)]).to_svg();
    let document = roxmltree::Document::parse(&svg).unwrap();
    let root = document.root_element();
    assert_eq!(root.attribute("role"), Some("img"));
    let description = root.children().find(|n| n.has_tag_name("desc")).and_then(|n| n.text()).unwrap();
    assert!(description.contains("line goes from 1.0000 to 2.0000"), "{description}");
    assert!(description.contains("y (logarithmic) against x"), "{description}");
}

#[test]
fn styles_differ_without_colour() {
    let dashes: Vec<Dash> = (0..4).map(|k| Style::nth(k).dash).collect();
    assert_eq!(dashes, [Dash::Solid, Dash::Dashed, Dash::DashDot, Dash::Dotted]);
}
