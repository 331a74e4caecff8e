"""What tasks of lm-eval render to is kept until what they are made of changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalcube.stages.generate import TASKS
from evalcube.stages.generate.errors import TaskError
from evalcube.stages.generate.foreign import bounded, lm_eval_kept
from evalcube.stages.generate.foreign.lm_eval import LmEvalParams, task
from tests.stages.generate.foreign.lm_eval_tasks import QUESTIONS, resolved


@pytest.mark.integration
def test_resolve__renders_a_task_once_until_what_it_is_made_of_changes(folder, monkeypatch):
    asked = []

    def counted(*args, **named):
        asked.append(args)
        return bounded.ask(*args, **named)

    monkeypatch.setattr(lm_eval_kept, "ask", counted)
    first = resolved(folder)
    (folder / "other.txt").write_text("nothing that it is made of")
    again = task("mine").resolve(LmEvalParams(include_path="."))
    assert len(asked) == 2  # which tasks there are, and what one renders to
    (folder / "mine.jsonl").write_text(json.dumps(QUESTIONS[1]) + "\n")
    fewer = task("mine").resolve(LmEvalParams(include_path="."))
    changed = resolved(folder, changes={"doc_to_text": "Now: {{question}}"})
    Path(changed.file).unlink()
    made_anew = task("mine").resolve(LmEvalParams(include_path="."))

    assert first == again
    assert (first.rows, fewer.rows, len(asked)) == (2, 1, 6)
    assert len({params.sha256 for params in (first, fewer, changed)}) == 3
    assert made_anew == changed
    assert Path(changed.file).exists()


def test_resolve__asks_for_the_extra(monkeypatch):
    monkeypatch.setattr(lm_eval_kept, "find_spec", lambda _: None)

    assert lm_eval_kept.members("mmlu", "") == []
    with pytest.raises(TaskError, match=r"pip install 'evalcube\[lm-eval\]'"):
        TASKS["lm-eval:gsm8k"].resolve(LmEvalParams())
