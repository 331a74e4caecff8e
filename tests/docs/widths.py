"""Names pages of the built documentation that are wider than a phone: `python -m tests.docs.widths site`."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.browser import BROWSERS

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PHONE = 400
"""Pixels."""


def too_wide(browser: Browser, site: Path) -> dict[str, int]:
    """Widths of the pages of a site that are wider than a phone, by name.

    Parameters
    ----------
    browser
        With what the pages are opened.
    site
        Folder of HTML pages.
    """
    found = {}
    page = browser.new_page(viewport={"width": PHONE, "height": 800})
    # What the theme would load from elsewhere neither comes nor is waited for.
    page.route(
        "**/*", lambda route: route.continue_() if route.request.url.startswith("file:") else route.abort()
    )
    for path in sorted(site.rglob("*.html")):
        page.goto(path.resolve().as_uri())
        width = page.evaluate("document.documentElement.scrollWidth")
        if width > PHONE:
            found[path.relative_to(site).as_posix()] = width
    page.close()
    return found


def main(site: Path) -> int:
    """Say which pages are too wide; returns an exit code.

    Parameters
    ----------
    site
        Folder of HTML pages.
    """
    from playwright.sync_api import sync_playwright

    chromium = next((path for path in map(shutil.which, BROWSERS) if path), None)
    if chromium is None:
        sys.stdout.write(
            "No page was looked at on a phone's screen, for want of chromium: apt install chromium\n"
        )
        return 0
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        found = too_wide(browser, site)
        browser.close()
    for name, width in found.items():
        sys.stdout.write(
            f"{site / name} is {width} pixels wide on a screen of {PHONE}: see docs/_static/narrow.css\n"
        )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
