"""Serves the explorer to tests, and looks at it in a browser."""

import asyncio
import threading
from contextlib import contextmanager

from aiohttp import web

from evalcube.flows.explore.server import application
from tests.waiting import PATIENCE


@contextmanager
def served(explored, token=""):
    """The explorer's address, while a thread serves it."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def start():
        runner = web.AppRunner(application(explored, token), access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        return runner

    runner = asyncio.run_coroutine_threadsafe(start(), loop).result(PATIENCE)
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(PATIENCE)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE)
        loop.close()


# What Chromium says of drawing in space without a graphics card.
_SOFTWARE = ("GL Driver Message", "willReadFrequently", "software WebGL")


class Page:
    """A page of the explorer, and what went wrong on it."""

    def __init__(self, page, base):
        self.page, self.base = page, base
        self.faults = []
        page.on(
            "console",
            lambda said: (
                self.faults.append(said.text)
                if said.type in ("error", "warning") and not any(words in said.text for words in _SOFTWARE)
                else None
            ),
        )
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on(
            "response",
            lambda reply: (
                self.faults.append(f"{reply.status} {reply.url} {reply.text()}")
                if reply.status >= 400
                else None
            ),
        )
        page.on("dialog", lambda dialog: (self.faults.append("dialog"), dialog.dismiss()))

    def go(self, state):
        """Go to a state such as ``ranking?task=sort``, and wait until it is drawn."""
        self.page.goto(f"{self.base}#/{state}")
        self.settled()

    def views(self):
        """Names of all views that the page offers."""
        return self.page.evaluate(
            """async () => {
                const overview = await explorer.ask("overview");
                const offered = one => !one.hidden && (!one.ready || one.ready(overview));
                return [...explorer.views.values()].filter(offered).map(one => one.name);
            }"""
        )

    def settled(self):
        """Wait until what the address means is drawn, charts too."""
        self.page.wait_for_function(
            """() => {
                const main = document.getElementById("main");
                const drawn = one => one.dataset.drawn || one.dataset.failed || !one.offsetWidth;
                return main.dataset.drawn === (location.hash || "#") && !main.classList.contains("busy")
                    && [...main.querySelectorAll(".plot")].every(drawn);
            }""",
            timeout=1000 * PATIENCE,
        )


@contextmanager
def opened(chromium, base, *, width=1400, height=900, dark=False):
    """A page of a fresh profile."""
    context = chromium.new_context(
        viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
    )
    try:
        context.set_default_timeout(1000 * PATIENCE)
        yield Page(context.new_page(), base)
    finally:
        context.close()
