"""How long pages of the explorer take in Chromium: the first one, a filter, trials; 200 models, 12 tasks of 40 points.

The cube has the suite m12's points, all counters and all trial arrays, and no replies. The server is a process of its
own, as `evalcube explore` starts it; times are those that the browser's own clock gives, from the change of the address
to the drawn page. The first look at a part counts: nothing is asked twice. Beside them stand the CPU seconds of server
and browser together, which are what a page takes at most where nothing else runs; on a busy machine go by them.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil
from playwright.sync_api import Browser, Page, sync_playwright
from reading import fill

GOALS = {"first paint": 2.0, "filter": 0.3, "trials": 1.0}
"""Seconds that each may take."""

TO_DRAWN = """async hash => {
    const main = document.getElementById("main");
    const before = performance.now();
    main.dataset.drawn = "";
    location.hash = hash;
    const until = test => new Promise(done => {
        const look = () => (test() ? done() : requestAnimationFrame(look));
        look();
    });
    await until(() => main.dataset.drawn !== "");
    await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
    if (document.querySelector("#main .problem")) throw new Error(document.querySelector("#main .problem").textContent);
    return performance.now() - before;
}"""
FIRST = """() => new Promise(done => {
    const look = () => (document.querySelector("#main tbody tr") ? requestAnimationFrame(() => done(performance.now()))
        : requestAnimationFrame(look));
    look();
})"""


def opened(browser: Browser, address: str) -> Page:
    """A page of a fresh profile; a fault on it ends the benchmark."""
    page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
    page.on("pageerror", lambda error: sys.exit(f"the page failed: {error}"))
    page.goto(address, wait_until="commit")
    return page


def spent() -> float:
    """CPU seconds of the server, the browser and its driver so far."""
    total = 0.0
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system
    return total


def rested() -> float:
    """Wait until the server has nothing in hand; the CPU seconds by then."""
    before = -1.0
    while (now := spent()) - before > 0.05:
        before = now
        time.sleep(1.0)
    return now


def told(name: str, kind: str, times: list[tuple[float, float]]) -> None:
    """Print the times of one thing."""
    walls, busy = ([one[place] for one in times] for place in (0, 1))
    wall, worst, cpu = statistics.median(walls), max(walls), statistics.median(busy)
    print(f"| {name:28s} | {wall:6.2f} | {worst:6.2f} | {cpu:6.2f} | {GOALS[kind]:4.1f} |", flush=True)


def main() -> None:
    """Make the cube, serve it and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=200)
    parser.add_argument("--browser", default=shutil.which("chromium") or shutil.which("google-chrome"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        url, trials = fill(Path(name), options.models)
        began = time.perf_counter()
        words = [sys.executable, "-m", "evalcube", "explore", url]
        server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        try:
            address = server.stdout.readline().strip() if server.stdout else ""
            print(f"{trials:,} trials; {time.perf_counter() - began:.1f} s until the server listens")
            print("| seconds | median | worst | CPU | goal |\n|---|---|---|---|---|")
            with sync_playwright() as driver:
                flags = ["--no-sandbox", "--disable-quic"]
                browser = driver.chromium.launch(executable_path=options.browser, args=flags)
                _measure(browser, address)
                browser.close()
        finally:
            server.terminate()
            server.wait(30)


def _measure(browser: Browser, address: str) -> None:
    def first() -> tuple[float, float]:
        before = spent()
        page = opened(browser, address)
        took = page.evaluate(FIRST) / 1000
        done = took, spent() - before
        page.context.close()
        return done

    told("first page, at once", "first paint", [first()])
    rested()
    told("first page, again", "first paint", [first() for _ in range(3)])
    page = opened(browser, address)
    page.evaluate(FIRST)
    tasks = [one["label"] for one in page.evaluate("() => explorer.ask('overview')")["tasks"]]

    def times(*states: str) -> list[tuple[float, float]]:
        found = []
        for state in states:
            before = rested()
            found.append((page.evaluate(TO_DRAWN, f"#/{state}") / 1000, spent() - before))
        return found

    told("ranking: one task", "filter", times(*(f"ranking?task={task}" for task in tasks[:6])))
    several = [f"ranking?task={tasks[0]}&task={task}&task={tasks[-1]}" for task in tasks[1:6]]
    told("ranking: three tasks", "filter", times(*several))
    told("ranking: a tier", "filter", times(*(f"ranking?tier={tier}" for tier in ("easy", "medium", "hard"))))
    told("ranking: a name", "filter", times(*(f"ranking?find=model-{i}" for i in range(3))))
    told("ranking: sorted", "filter", times("ranking?sort=-truncated", "ranking?sort=label"))
    told("tasks: first look", "filter", times("heat"))
    told("tasks: a tier", "filter", times(*(f"heat?tier={tier}" for tier in ("easy", "medium", "hard"))))
    told("tasks: one task", "filter", times(*(f"heat?task={task}" for task in tasks[:4])))
    told("difficulty: a task", "filter", times("curve", *(f"curve?task={task}" for task in tasks[1:5])))
    told("spider: a tier", "filter", times("radar", *(f"radar?tier={tier}" for tier in ("easy", "hard"))))
    told(
        "failures: a tier",
        "filter",
        times("failures", *(f"failures?tier={tier}" for tier in ("easy", "hard"))),
    )
    told("trials", "trials", times("trials", "trials?offset=50", "trials?offset=1000000"))
    told("trials: wrong ones", "trials", times("trials?status=incorrect", "trials?status=truncated"))
    told(
        "trials: of a model and a task",
        "trials",
        times(*(f"trials?model=model-{10 * i:03}&task={tasks[i]}" for i in range(4))),
    )
    told(
        "one trial",
        "trials",
        times(*(f"trial?evaluation=model-{i:03}&asked={tasks[0]}&point={i}" for i in range(10, 13))),
    )


if __name__ == "__main__":
    main()
