"""The status page of a site that runs, as a browser shows it: it refreshes itself, and says so when nobody answers."""

import os
import pathlib
import re
import socket
import subprocess
from collections.abc import Iterator

import pytest
from build_pages import SCHEMA, table

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = pathlib.Path(os.environ.get("PADMM_PROGRAMS", ROOT / "target" / "release")) / "padmm-site"


def free_ports(n: int) -> list[int]:
    sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(n)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


@pytest.fixture
def study(tmp_path: pathlib.Path) -> pathlib.Path:
    """Two sites with a plan that both have accepted."""

    def run(*args: str) -> None:
        subprocess.run([str(PROGRAM), *args], cwd=tmp_path, check=True, stdout=subprocess.DEVNULL)

    (tmp_path / "s.toml").write_text(SCHEMA, encoding="utf-8")
    (tmp_path / "t.csv").write_text(table(120), encoding="utf-8")
    (tmp_path / "cards").mkdir()
    plan = ["plan", "new", "--name", "trial", "--schema", "s.toml", "--rounds", "5", "--epsilon", "2"]
    for site, port in zip(("north", "south"), free_ports(2), strict=True):
        address = f"127.0.0.1:{port}"
        cap = ("--cap-epsilon", "6", "--cap-delta", "1e-3")
        init = ("site", "init", "--home", site, "--name", site, "--data", "t.csv", *cap)
        run(*init, "--address", address, "--listen", address)
        (tmp_path / "cards" / f"{site}.toml").write_bytes((tmp_path / site / "card.toml").read_bytes())
        plan += ["--card", f"cards/{site}.toml:120"]
    run(*plan, "--out", "plan.toml")
    for site in ("north", "south"):
        run("plan", "accept", "plan.toml", "--home", site, "--cards", "cards", "--yes")
    return tmp_path


@pytest.fixture
def site(study: pathlib.Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """North, which waits for south, and the address of its page."""
    command = [str(PROGRAM), "site", "run", "--home", "north", "--run", "trial", "--status", "127.0.0.1:0"]
    with subprocess.Popen(command, cwd=study, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stderr is not None
            lines = iter(process.stderr.readline, "")
            address = next(found.group(1) for line in lines if (found := re.search(r"status page is (http://\S+)", line)))
            # The page is there once the session has spoken for the first time.
            next(line for line in lines if "waiting for south" in line)
            yield process, address
        finally:
            process.kill()


@pytest.mark.parametrize("width", [1280, 400])
def test_a_waiting_site_is_shown_and_the_page_keeps_itself_fresh(open_page, site, width):
    process, address = site
    tab = open_page(address, width)
    assert tab.page.title() == "north: trial"
    tab.wait_for("document.querySelector('.callout-text')?.textContent.includes('aiting for south')")
    assert "nothing has been spent" in tab.page.locator(".callout-title").inner_text()
    assert tab.page.locator("main h2").all_inner_texts() == [
        "Now",
        "Neighbours",
        "Privacy",
        "What left this site",
        "Certificates",
        "Log",
    ]
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing hangs over the edge"

    # The clock moves on, and the page was not loaded again.
    tab.evaluate("window.stays = true")
    clock = "[...document.querySelectorAll('.facts dd')].at(-1) && document.querySelector('.facts').textContent"
    before = tab.evaluate(clock)
    tab.wait_for(f"({clock}) !== {before!r}")
    assert tab.evaluate("window.stays") is True
    assert tab.problems() == []
    assert all(request.startswith(address) for request in tab.requests()), tab.requests()

    process.kill()
    tab.wait_for("document.querySelector('.stale')?.hidden === false")
    assert "has not answered" in tab.page.locator(".stale").inner_text()


def test_without_scripts_the_browser_loads_the_page_again(open_page, site):
    _, address = site
    tab = open_page(address, 800, scripts=False)
    assert tab.page.locator("noscript meta").count() + tab.page.locator("meta[http-equiv=refresh]").count() >= 1
    assert "Neighbours" in tab.page.content()
