"""The example notebook, executed as it stands in a kernel of its own, and the progress bar that a run shows there."""

import re
from pathlib import Path

import pytest

from evalcube.flows.events import Asked, Finished, Noted, Started, Traffic
from evalcube.flows.run.follow.display import NotebookDisplay
from evalcube.flows.run.follow.progress import Tracker
from tests.waiting import PATIENCE

NOTEBOOK = Path(__file__).parents[3] / "docs" / "notebooks" / "sweep.ipynb"
HOSTILE = '<img src=x onerror="alert(1)">'


def shown(cell):
    """What a cell shows, as HTML and as text."""
    found = [output.get("data", {}) for output in cell.outputs]
    return "".join(
        str(data.get(kind, "")) for data in found for kind in ("text/html", "text/plain")
    ) + "".join(output.get("text", "") for output in cell.outputs)


@pytest.mark.cluster
def test_notebook__runs_from_top_to_bottom_and_shows_what_it_says(tmp_path, monkeypatch):
    nbformat, client = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    monkeypatch.setenv("PYTHONPATH", str(NOTEBOOK.parents[2]))
    notebook = nbformat.read(NOTEBOOK, 4)

    client.NotebookClient(
        notebook, timeout=PATIENCE, startup_timeout=PATIENCE, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()

    run, board, drawn, compared, rates, trials, counts, grown = [
        cell for cell in notebook.cells if cell.cell_type == "code"
    ]
    progress = [
        output for output in run.outputs if "<progress" in str(output.get("data", {}).get("text/html"))
    ]
    assert len(progress) == 1
    text = progress[0]["data"]["text/html"]
    assert "192 of 192 trials, 100% complete" in text
    assert 'value="192" max="192"' in text
    assert text.count(">done<") == 2
    assert re.search(r"<th[^>]*>accuracy</th>", shown(board))
    assert shown(board).index("strong") < shown(board).index("weak")
    assert "'strong' is" in shown(compared)
    assert any("strong" in output.get("data", {}).get("image/svg+xml", "") for output in drawn.outputs)
    assert "param_length" in shown(rates)
    assert "incorrect" in shown(trials)
    assert "sort" in shown(counts)
    assert "middle" in shown(grown)


def test_notebook_display__shows_progress_and_takes_names_for_text():
    now = 0.0
    display = NotebookDisplay(Tracker(lambda: now))
    display(Started("r", "c", 20, 0, (HOSTILE, "b"), asked=(Asked(HOSTILE, 10, 10), Asked("b", 10, 10))))
    display(Noted(HOSTILE))
    pause = {HOSTILE: {"seconds": 9.0, "reason": HOSTILE}}
    display(Traffic(answered={"b": 10}, replies=10, in_flight=3, waiting=pause, worker="w"))

    text = display.html()

    assert "<img" not in text
    assert text.count("&lt;img") == 4
    assert "10 of 20 trials, 50%" in text
    assert "in flight 3" in text
    display(Finished("incomplete"))
    assert "incomplete" in display.html()
    assert "ETA" not in display.html()
