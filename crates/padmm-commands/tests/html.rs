//! Pages as text: nothing in them can leave its place, and the same page gives the same bytes.

use padmm_commands::chart::{Figure, Panel, Series, Style};
use padmm_commands::page::{Block, Column, Page, Section, Table};

// The page is the example's, so that a browser opens what is tested here.
#[allow(dead_code)]
#[path = "../examples/pages.rs"]
mod pages;

use pages::hostile;

#[test]
fn text_stays_text() {
    let html = hostile().to_html();
    let n_figures = 4;
    assert_eq!(
        html.matches("</script>").count(),
        n_figures + 1,
        "the figures' numbers and the script itself"
    );
    assert_eq!(html.matches("</style>").count(), 1);
    for forbidden in ["<b>", "<!--", "&amp;</", "'><", "http-equiv=\"refresh\""] {
        assert!(!html.contains(forbidden), "{forbidden}");
    }
    let escaped = "&quot;&#39;&gt;&lt;b&gt;&amp;amp;&lt;/script&gt;&lt;/style&gt;&lt;!--";
    assert!(html.matches(escaped).count() > 50, "escaped, not dropped");
    assert!(html.contains("\"label\":\"\\\"\\u0027\\u003e\\u003cb\\u003e\\u0026amp;\\u003c/script\\u003e"));
}

#[test]
fn anchors_are_plain_and_unique() {
    let html = hostile().to_html();
    let mut ids: Vec<&str> =
        html.split(" id=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!(ids.len(), 1 + 2 + 4, "{ids:?}");
    assert!(ids.iter().all(|id| id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')), "{ids:?}");
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 7, "{ids:?}");
    for number in [1, 2] {
        assert!(html.contains(&format!("<a href=\"#section-{number}\">")));
    }
}

#[test]
fn nothing_is_requested() {
    let html = hostile().to_html();
    assert!(html.contains("http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';"));
    // The name of the SVG format is the one address, and it is never opened.
    let rest = html.replace("http://www.w3.org/2000/svg", "").replace("http:%2F%2F", "http://");
    for forbidden in ["http://", "https://", " src=", "@import", "url(", "fetch(", "XMLHttpRequest", "eval("]
    {
        assert!(!rest.contains(forbidden), "{forbidden}");
    }
}

#[test]
fn pages_are_repeatable_and_may_be_empty() {
    assert_eq!(hostile().to_html(), hostile().to_html());
    let empty = Page::default().to_html();
    assert!(empty.ends_with("</html>\n") && !empty.contains("<nav"));
    let odd = Table { columns: vec![Column::text("a"), Column::number("b")], ..Table::default() };
    let short = Table { rows: vec![vec![], vec!["1".into(), "2".into(), "3".into()]], ..odd };
    let blocks = vec![
        Block::Table(short),
        Block::Figure(Box::default(), String::new()),
        Block::Figure(Box::new(Figure::new("", vec![Panel::default()])), "content".into()),
    ];
    let html = Page { sections: vec![Section { title: String::new(), blocks }], ..Page::default() }.to_html();
    assert!(html.contains("<td class=\"number\">2</td></tr>"), "the third cell has no column");
    assert!(html.contains("<th scope=\"row\"></th><td class=\"number\"></td>"), "missing cells are empty");
    assert!(html.contains("id=\"figure\"") && html.contains("id=\"figure-2\""));
}

#[test]
fn figures_choose_their_own_size() {
    let panel = |label: &str| Panel {
        series: vec![Series::new(label, vec![(0.0, 1.0)], Style::nth(0))],
        ..Panel::default()
    };
    let columns = |n: usize| Figure::new("t", vec![panel("a"); n]).columns;
    assert_eq!([0, 1, 2, 3, 4, 5, 6].map(columns), [1, 1, 2, 3, 2, 3, 3]);
    assert!(Figure::new("t", vec![panel("a"), panel("a")]).shared_legend);
    assert!(!Figure::new("t", vec![panel("a"), panel("b")]).shared_legend);
    let six = Figure::new("t", vec![panel("a"); 6]);
    assert_eq!(six.to_svg().matches(">a</text>").count(), 1, "one legend for six panels");
    assert_eq!(six.to_svg().matches(" id=").count(), 0, "nothing that could clash in a page");
}
