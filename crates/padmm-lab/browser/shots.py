"""Pictures of a page with charts, to be looked at: shots.py PAGE.html DIR.

Run it with the Python of target/browser-venv, which .ci/browser makes.
"""

import pathlib
import sys

import chromium
from playwright.sync_api import sync_playwright


def main(page: pathlib.Path, folder: pathlib.Path) -> None:
    program = chromium.find()
    if program is None:
        sys.exit(chromium.ADVICE)
    folder.mkdir(parents=True, exist_ok=True)
    shots = [("wide", 1280, "light"), ("dark", 1280, "dark"), ("middle", 800, "light"), ("narrow", 400, "light")]
    with sync_playwright() as playwright:
        browser = chromium.launch(playwright, program)
        for name, width, scheme in shots:
            with chromium.opened(browser, page, width) as tab:
                tab.page.emulate_media(color_scheme=scheme)
                tab.settle()
                tab.page.screenshot(path=folder / f"{name}.png", full_page=True)
        for name, width in (("hover", 1280), ("hover-narrow", 400)):
            with chromium.opened(browser, page, width) as tab:
                tab.page.mouse.move(*tab.middle_of("svg.plot"))
                tab.settle()
                tab.page.screenshot(path=folder / f"{name}.png", full_page=True)
        with chromium.opened(browser, page, 1280) as tab:
            tab.page.pdf(path=folder / "print.pdf", format="A4", prefer_css_page_size=True)
        browser.close()


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
