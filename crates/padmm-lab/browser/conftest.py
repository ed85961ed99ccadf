"""Where the pages are and which browser opens them."""

import json
import os
import pathlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import chromium
import pytest
from playwright.sync_api import Browser, sync_playwright

ROOT = pathlib.Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def pages() -> pathlib.Path:
    """The folder that build_pages.py wrote; PADMM_PAGES names another."""
    folder = pathlib.Path(os.environ.get("PADMM_PAGES", ROOT / "target" / "browser-pages"))
    assert (folder / "expected.json").is_file(), f"{folder} has no pages: run .ci/browser, which writes them"
    return folder


@pytest.fixture(scope="session")
def expected(pages: pathlib.Path) -> dict[str, Any]:
    """What the library's own numbers say that the pages of its example must show."""
    return json.loads((pages / "expected.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = chromium.find()
    if program is None:
        is_required = os.environ.get("PADMM_REQUIRE_BROWSER", "0") not in ("", "0")
        (pytest.fail if is_required else pytest.skip)(chromium.ADVICE)
    with sync_playwright() as playwright:
        started = chromium.launch(playwright, program)
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., chromium.Tab]]:
    """Opens a page: open_page(path, width, height=900, scripts=True)."""
    with ExitStack() as stack:
        yield lambda *where, **how: stack.enter_context(chromium.opened(browser, *where, **how))
