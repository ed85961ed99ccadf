"""The pages of padmm as a reader's browser shows them. Run by .ci/browser, which builds them first."""

import pathlib
import urllib.parse

import pytest

FIRST = "#convergence .panel:nth-child(1)"
N_LINES, N_TRADE_OFF_LINES = 7, 24


def hover(tab, label):
    """Moves the pointer over the first panel, to where its axis says `label`; returns the lines of the box."""
    _, y = tab.middle_of(f"{FIRST} svg.plot")
    x = tab.evaluate(
        f"""(() => {{
            const tick = [...document.querySelectorAll('{FIRST} svg.plot text')].find((t) => t.textContent === '{label}');
            const box = tick.getBoundingClientRect();
            return box.left + box.width / 2;
        }})()"""
    )
    tab.page.mouse.move(x, y)
    tab.wait_for(f"document.querySelector('{FIRST} .tip b')?.textContent.endsWith(' {label}')")
    return tab.evaluate(
        f"""[...document.querySelector('{FIRST} .tip').children]
        .map((row) => [...row.childNodes].map((n) => n.textContent).join(' ').trim())"""
    )


def value_at_20(expected, label):
    """What the box must say of the first panel at round 20, from the figure's own numbers."""
    series = next(s for s in expected["figures"]["convergence"]["first"] if s["label"] == label)
    k, y = next((k, y) for k, (x, y) in enumerate(series["points"]) if x == 20)
    if series["band"] is None:
        return f"{label} {y:.5f}"
    # Two digits of the deviation, all of which are 0.017 or 0.0040 in this panel.
    return f"{label} {y:.3f} ± 0.017" if series["band"][k][1] - y > 0.01 else f"{label} {y:.4f} ± 0.0040"


@pytest.mark.parametrize("width", [1280, 400])
def test_every_chart_is_drawn_and_nothing_is_requested(open_page, pages, expected, width):
    tab = open_page(pages / "page.html", width)
    for name, figure in expected["figures"].items():
        assert tab.count(f"#{name} svg.plot") == figure["panels"]
        assert tab.visible_lines(f"#{name}") == figure["series"]
        assert tab.count(f"#{name} path.band") == figure["bands"]
        # What is saved is what the library writes.
        for kind in ("svg", "csv"):
            saved, address = tab.evaluate(
                f"""(() => {{
                    const link = document.querySelector('#{name} a[download$=".{kind}"]');
                    return [link.download, link.href];
                }})()"""
            )
            assert saved == f"{name}.{kind}"
            assert urllib.parse.unquote(address.split(",", 1)[1]) == figure[kind]
    assert tab.problems() == []
    assert len(tab.requests()) == 1, f"the page itself: {tab.requests()}"


def test_values_are_shown_under_the_pointer_and_by_keys(open_page, pages, expected):
    tab = open_page(pages / "page.html", 1280)
    wanted = [value_at_20(expected, label) for label in ("releases", "smoothed model", "without noise")]
    assert hover(tab, "20") == ["round: 20", *wanted]
    assert tab.count(f"{FIRST} .dot") == 3

    tab.page.mouse.move(2, 2)
    tab.wait_for(f"document.querySelector('{FIRST} .tip').hidden")
    assert tab.count(".crosshair") == 0

    tab.evaluate(f"document.querySelector('{FIRST} svg.plot').focus()")
    steps = [("End", "round: 50"), ("ArrowLeft", "round: 49"), ("Home", "round: 1"), ("ArrowRight", "round: 2")]
    for key, title in steps:
        tab.page.keyboard.press(key)
        assert tab.evaluate(f"document.querySelector('{FIRST} .tip b').textContent") == title, key
    tab.page.keyboard.press("Escape")
    assert tab.evaluate(f"document.querySelector('{FIRST} .tip').hidden")
    assert tab.problems() == []


def test_legends_hide_and_show_lines(open_page, pages, expected):
    tab = open_page(pages / "page.html", 1280)
    # A legend of one panel: the first line goes, and with it its value.
    tab.click("#convergence [data-key='0'] .key")
    assert tab.visible_lines("#convergence") == N_LINES - 1
    pressed = tab.evaluate(
        "[...document.querySelectorAll('#convergence .key')].map((k) => k.getAttribute('aria-pressed') === 'true')"
    )
    assert pressed == [False, True, True, True, True, True, True]
    rows = hover(tab, "20")
    assert rows[1:] == [value_at_20(expected, label) for label in ("smoothed model", "without noise")]
    tab.evaluate("document.querySelector(\"#convergence [data-key='0'] .key\").focus()")
    tab.page.keyboard.press("Enter")
    assert tab.visible_lines("#convergence") == N_LINES

    # A legend of all panels; two clicks leave one line in each.
    tab.click("#trade-off [data-key='3'] .key")
    assert tab.visible_lines("#trade-off") == N_TRADE_OFF_LINES - 3
    tab.click("#trade-off [data-key='2'] .key", times=2)
    assert tab.visible_lines("#trade-off") == 3
    tab.click("#trade-off .tools button")
    assert tab.visible_lines("#trade-off") == N_TRADE_OFF_LINES
    tab.evaluate("document.querySelector(\"#trade-off [data-key='5'] .only\").focus()")
    tab.page.keyboard.press("Enter")
    assert tab.visible_lines("#trade-off") == 3
    assert tab.visible_lines("#convergence") == N_LINES, "figures do not touch each other"
    assert tab.problems() == []


def test_wide_windows_have_the_columns_of_the_figure(open_page, pages):
    tab = open_page(pages / "columns.html", 1900)
    found = {}
    for n in (1, 2, 4, 5, 6):
        found[n] = tab.evaluate(
            f"""(() => {{
                const boxes = [...document.querySelectorAll('#of-{n} svg.plot')].map((s) => s.getBoundingClientRect());
                return ['left', 'top'].map((side) => new Set(boxes.map((b) => Math.round(b[side]))).size);
            }})()"""
        )
    assert found == {1: [1, 1], 2: [2, 1], 4: [2, 2], 5: [3, 2], 6: [3, 2]}, "columns and rows"


def test_narrow_windows_scroll_down_only(open_page, pages):
    tab = open_page(pages / "page.html", 400, 800)
    assert tab.evaluate("document.documentElement.scrollWidth") == 400
    assert tab.evaluate(
        "document.querySelector('.table').scrollWidth > document.querySelector('.table').clientWidth"
    ), "a table that is too wide scrolls within itself"
    lefts = tab.evaluate(
        "[...document.querySelectorAll('svg.plot')].map((s) => Math.round(s.getBoundingClientRect().left))"
    )
    assert len(lefts) == 6 and len(set(lefts)) == 1, f"one below the other: {lefts}"
    for label in ("10", "30", "50"):
        hover(tab, label)
        left, right = tab.evaluate(
            f"""(() => {{
                const box = document.querySelector('{FIRST} .tip').getBoundingClientRect();
                return [box.left, box.right];
            }})()"""
        )
        assert left >= 0 and right <= 400, f"the box at {label} reaches from {left} to {right}"
        assert tab.evaluate("document.documentElement.scrollWidth") == 400
    assert tab.problems() == []


def test_readers_without_scripts_get_everything(open_page, pages):
    tab = open_page(pages / "page.html", 1280, scripts=False)
    assert tab.visible_lines("#convergence") == N_LINES
    assert tab.count("button") == 0, "nothing that would not work"
    assert tab.count("#trade-off .legend li") == 8


def test_dark_screens_and_paper_have_their_colours(open_page, pages):
    tab = open_page(pages / "page.html", 1280)

    def colours():
        return tab.evaluate(
            """[getComputedStyle(document.body).backgroundColor,
            getComputedStyle(document.querySelector('.plot .c6 .line')).stroke]"""
        )

    black_on_white, white_on_black = ["rgb(255, 255, 255)", "rgb(0, 0, 0)"], ["rgb(21, 25, 29)", "rgb(232, 232, 232)"]
    tab.page.emulate_media(media="screen", color_scheme="light")
    assert colours() == black_on_white
    tab.page.emulate_media(media="screen", color_scheme="dark")
    assert colours() == white_on_black
    tab.page.emulate_media(media="print", color_scheme="light")
    assert colours() == black_on_white
    shown = {
        selector: tab.evaluate(f"document.querySelector('{selector}').getClientRects().length > 0")
        for selector in (".tools", ".only", ".command button", ".legend", "svg.plot")
    }
    assert shown == {
        ".tools": False, ".only": False, ".command button": False, ".legend": True, "svg.plot": True,
    }  # fmt: skip
    assert tab.page.pdf(format="A4", prefer_css_page_size=True).startswith(b"%PDF-")


def test_text_stays_text(open_page, pages, expected):
    tab = open_page(pages / "hostile.html", 1000, 800)
    places = (
        "title, h1, .lead, h2, .contents a, section > p:not([class]), section > ul > li, .callout-text, .table-caption, "
        "th, td, h3, .chart-lead, .panel-title, .key span, .panel-note, .chart-note, code, dt, dd, footer p"
    )
    texts = tab.evaluate(f"[...document.querySelectorAll('{places}')].map((e) => e.textContent)")
    assert len(texts) > 50
    assert set(texts) == {expected["hostile"]}
    tab.page.mouse.move(*tab.middle_of("svg.plot"))
    tab.wait_for("!document.querySelector('.tip').hidden")
    assert tab.evaluate("document.querySelector('.tip div span').textContent") == expected["hostile"]
    assert tab.problems() == []


@pytest.mark.parametrize(
    ("name", "charts"),
    [("one/report.html", 3), ("compared.html", 3), ("all/report.html", 3), ("audit/audit.html", 2)],
)
def test_pages_of_the_command_show_every_chart(open_page, pages, name, charts):
    tab = open_page(pages / name, 1280)
    assert tab.problems() == []
    assert len(tab.requests()) == 1, f"only the page itself: {tab.requests()}"
    assert tab.count("svg.plot") == charts
    undrawn = tab.evaluate(
        """[...document.querySelectorAll('svg.plot')].filter((plot) => {
            const lines = [...plot.querySelectorAll('.series path.line')];
            return lines.length === 0 || lines.some((l) => l.getTotalLength() < 10);
        }).length"""
    )
    assert undrawn == 0, "charts with a line that is not drawn"


def test_errors_and_requests_are_noticed(open_page, tmp_path: pathlib.Path):
    """The tests above rest on it: what goes wrong in a page is seen, and only there."""
    path = tmp_path / "bad page #1.html"
    head = "<!doctype html><title>t</title><link rel=icon href=data:,><p>text</p>"
    path.write_text(
        head + "<img src=http://127.0.0.1:9/picture.png><script>console.error('said', 1);"
        "setTimeout(() => { throw new Error('thrown'); }, 0);</script>"
    )
    tab = open_page(path, 600, 400)
    tab.wait_for("document.images[0].complete")
    assert tab.evaluate("[innerWidth, document.title]") == [600, "t"]
    problems = "\n".join(tab.problems())
    assert "said" in problems and "thrown" in problems
    first, *others = tab.requests()
    assert first.endswith("bad%20page%20%231.html")
    assert others == ["http://127.0.0.1:9/picture.png"]

    path.write_text(head)
    tab = open_page(path, 600, 400)
    assert tab.problems() == [], "what happened in another tab does not count"
    assert len(tab.requests()) == 1
    assert tab.page.screenshot(full_page=True).startswith(b"\x89PNG\r\n\x1a\n")
    assert tab.page.pdf().startswith(b"%PDF-")
