"""Chromium as the tests and the screenshots start it, and one opened page with what happened in it."""

import contextlib
import os
import pathlib
import shutil
from collections.abc import Iterator
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Page, Playwright, Request

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Generous, because machines that run tests are busy.
DEADLINE_MS = 60_000
ADVICE = "no browser found: install Chromium (Debian: `apt-get install chromium`) or set CHROMIUM to its program"


def find() -> str | None:
    """The program that CHROMIUM names, or the first of the usual ones on the path."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


def launch(playwright: Playwright, program: str) -> Browser:
    # Containers have no sandbox of their own and little shared memory; the pages are the project's.
    flags = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    return playwright.chromium.launch(executable_path=program, args=flags, timeout=DEADLINE_MS)


class Tab:
    """An open page. Everything that went wrong in it, or that it asked for, is kept."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self._problems: list[str] = []
        self._requests: list[str] = []
        page.set_default_timeout(DEADLINE_MS)
        page.on("pageerror", lambda error: self._problems.append(f"exception: {error}"))
        page.on("console", self._on_console)
        page.on("request", self._on_request)

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning", "assert"):
            self._problems.append(f"console: {message.text}")

    def _on_request(self, request: Request) -> None:
        # Data within the page are not requests.
        if not request.url.startswith("data:"):
            self._requests.append(request.url)

    def evaluate(self, expression: str) -> Any:
        return self.page.evaluate(expression)

    def wait_for(self, condition: str) -> None:
        """Waits until a JavaScript expression is true.

        Playwright's own wait evaluates strings within the page, which the page's security policy forbids.
        """
        is_met = self.evaluate(
            f"""new Promise((done) => {{
                const end = performance.now() + {DEADLINE_MS / 3};
                (function look() {{
                    if ({condition}) done(true);
                    else if (performance.now() > end) done(false);
                    else setTimeout(look, 10);
                }})();
            }})"""
        )
        assert is_met, f"this did not become true: {condition}"

    def problems(self) -> list[str]:
        """Exceptions, and errors and warnings on the console."""
        self.settle()
        return self._problems

    def requests(self) -> list[str]:
        """Every address that was asked for, the page's own first."""
        self.settle()
        return self._requests

    def settle(self) -> None:
        """Lets the page draw twice, so that what it started has been reported."""
        self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")

    def count(self, selector: str) -> int:
        return self.page.locator(selector).count()

    def visible_lines(self, figure: str) -> int:
        """How many lines with points are on the screen."""
        return self.evaluate(
            f"""[...document.querySelectorAll('{figure} svg.plot .series:not(.off) path.line')]
            .filter((p) => p.getTotalLength() > 20 && p.getBoundingClientRect().width > 20).length"""
        )

    def middle_of(self, selector: str) -> tuple[float, float]:
        """The middle of the first element that the selector finds, scrolled to the middle of the window."""
        x, y = self.page.locator(selector).first.evaluate(
            """(found) => {
                found.scrollIntoView({ block: 'center', behavior: 'instant' });
                const box = found.getBoundingClientRect();
                return [box.left + box.width / 2, box.top + box.height / 2];
            }"""
        )
        return x, y

    def click(self, selector: str, times: int = 1) -> None:
        self.page.mouse.click(*self.middle_of(selector), click_count=times)


@contextlib.contextmanager
def opened(
    browser: Browser, path: pathlib.Path | str, width: int, height: int = 900, scripts: bool = True
) -> Iterator[Tab]:
    """The file or address in a window of that size, which runs no script of the page unless `scripts`."""
    context = browser.new_context(viewport={"width": width, "height": height}, java_script_enabled=scripts)
    try:
        tab = Tab(context.new_page())
        address = path if isinstance(path, str) else path.resolve().as_uri()
        tab.page.goto(address, wait_until="load")
        yield tab
    finally:
        context.close()
