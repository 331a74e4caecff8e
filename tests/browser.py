"""The browser that tests look at pages with."""

import shutil

import pytest

from tests.tiers import need
from tests.waiting import PATIENCE

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


# Of a module, as playwright keeps a loop running in this thread, in which others call asyncio.run.
@pytest.fixture(scope="module")
def chromium():
    """The browser of the machine, driven by playwright."""
    found = next((path for path in map(shutil.which, BROWSERS) if path), None)
    need("browser", found, "chromium on PATH, which looks at pages: apt install chromium")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=found,
            args=["--no-sandbox", "--disable-quic", "--enable-unsafe-swiftshader"],
            timeout=1000 * PATIENCE,
        )
        yield browser
        browser.close()
