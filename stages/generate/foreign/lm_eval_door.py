"""Render the questions of tasks of lm-eval, and grade replies to them as lm-eval does; runs in the bounded process."""

from __future__ import annotations

import json
import logging
import os
import random
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from evalcube.stages.generate.foreign.lm_eval_letters import LETTERED, add_letters, lettered_task

FEWSHOT_SEED = 1234
"""With which lm-eval draws examples unless it is told otherwise."""
MOST_TOKENS = 256
"""What lm-eval asks an API for where a task does not say."""


_PLAIN_MEMBER = frozenset({"task", "task_alias"})


class RefusedError(Exception):
    """A task that cannot be asked here, and why."""


def warm() -> None:
    """Import lm-eval and what its tasks need."""
    logging.disable(logging.CRITICAL)
    import lm_eval.api.metrics
    import lm_eval.api.task
    import lm_eval.filters  # noqa: F401 - registers them


def answer(given: dict[str, Any]) -> object:
    """The groups of tasks, the rows of one, or the scores of a reply to one of them."""
    import lm_eval.tasks

    root = Path(given.pop("root") or Path(lm_eval.tasks.__file__).parent)
    if "text" in given:
        return _scores(root, given)
    try:
        if "yaml" not in given:
            return _index(root)
        os.chdir(given["folder"])  # a task's own files may be named relative to it
        return _rows(root, given)
    except RefusedError as refusal:
        return {"refused": str(refusal)}


# ---- the definition of a task


def _index(root: Path) -> dict[str, dict[str, Any]]:
    """The file of each task; and by group and tag what they list, which may be groups and tags, too."""
    from lm_eval.tasks._yaml_loader import load_yaml

    @cache  # by itself lm-eval reads what thousands of files include for each of them
    def fields(path: Path) -> dict[str, Any]:
        own = load_yaml(path, resolve_func=False, recursive=False)
        names = own.get("include") or ()
        included = [
            fields((path.parent / name).resolve()) for name in ([names] if isinstance(names, str) else names)
        ]
        return dict(chain(*(config.items() for config in (*included, own))))

    tasks: dict[str, str] = {}
    lists: dict[str, list[str]] = {}
    for path in sorted(root.rglob("*.yaml")):
        try:
            config = fields(path.resolve())
        except Exception:  # noqa: BLE001, S112 - lm-eval skips what it cannot read, too
            continue
        if "group" in config:
            lists.setdefault(config["group"], list(_members(config)))
        elif isinstance(config.get("task"), str):
            tasks.setdefault(config["task"], path.relative_to(root).as_posix())
            tags = config.get("tag") or ()
            for tag in [tags] if isinstance(tags, str) else tags:
                lists.setdefault(tag, []).append(config["task"])
    return {"tasks": tasks, "lists": lists}


def _members(group: dict[str, Any]) -> Iterator[str]:
    """Names of what a group lists."""
    for member in group.get("task") or ():
        if isinstance(member, dict) and "group" in member:
            yield from _members(member)
        elif isinstance(member, dict) and (changes := sorted(member.keys() - _PLAIN_MEMBER)):
            yield f"{member.get('task')}, with {', '.join(changes)} of its own"
        else:
            yield member["task"] if isinstance(member, dict) else member


def _config(path: Path, *, lettered: bool = False) -> dict[str, Any]:
    """The definition with the functions that it names, unless it is one that is not asked here."""
    from lm_eval.tasks._yaml_loader import load_yaml

    for why in _reasons(load_yaml(path, resolve_func=False), lettered=lettered):
        raise RefusedError(why)
    config = load_yaml(path, resolve_func=True)
    return {key: value for key, value in config.items() if key not in ("tag", "group", "task_list")}


def _reasons(config: dict[str, Any], *, lettered: bool) -> Iterator[str]:
    """Why a task is refused; told from its text, before any of its code runs."""
    from lm_eval.api.registry import metric_registry

    kind = config.get("output_type", "generate_until")
    chosen = (
        "is of output type multiple_choice: lm-eval compares the likelihoods of its options, which is not done here. "
        f"lm-eval:{LETTERED}{config.get('task')} asks for the letter of an option, which is another measure"
    )
    repeats = int(config.get("repeats") or 1)
    unasked = kind not in ("generate_until", "multiple_choice")
    remote = (config.get("dataset_kwargs") or {}).get("trust_remote_code")
    by_likelihoods = lettered and "process_results" in config
    reasons = {
        "is a class of Python and no definition in YAML": "class" in config,
        chosen: kind == "multiple_choice" and not lettered,
        f"is of output type {kind}, which needs the probabilities of texts; only generate_until is asked": unasked,
        f"has no options; leave out {LETTERED}": lettered and kind == "generate_until",
        "has several right options, or grades likelihoods by code of its own (process_results)": by_likelihoods,
        "runs code that models write (unsafe_code)": config.get("unsafe_code"),
        "runs code that comes with its data (trust_remote_code)": remote,
        "asks about images or sounds": config.get("doc_to_image") or config.get("doc_to_audio"),
        "takes its prompt from promptsource, which fetches code": config.get("use_prompt"),
        f"grades {repeats} replies to a question together; take the task that grades one": repeats > 1,
    }
    yield from (why for why, holds in reasons.items() if holds)
    for metric in () if lettered else config.get("metric_list") or ():
        name = metric.get("metric")
        called = isinstance(name, str) and ("/" in name or "." in name)  # a function, not resolved yet
        own = bool(config.get("process_results"))
        if metric.get("hf_evaluate") or not (own or called or name in metric_registry):
            yield f"has the metric {name}, whose code is fetched from the hub"


class _Rows(list[dict[str, Any]]):
    """What stands for a data set where one question is graded."""

    @property
    def features(self) -> dict[str, None]:
        return dict.fromkeys(self[0]) if self else {}


def _make_task(config: dict[str, Any], doc: dict[str, Any] | None = None) -> Any:  # noqa: ANN401 - lm-eval has no types
    """The task; with a `doc`, which has been processed, one that has no other and reads no data."""
    from lm_eval.api.task import ConfigurableTask

    if doc is None:
        return ConfigurableTask(config=config)
    only = _Rows([doc])

    class OneQuestion(ConfigurableTask):  # type: ignore[misc]  # lm-eval has no types
        def download(self, dataset_kwargs: object = None, **_: object) -> None:  # noqa: ARG002
            splits = ("training_split", "validation_split", "test_split", "fewshot_split")
            self.dataset = {getattr(self.config, split): only for split in splits}
            self.dataset[self.fewshot_cfg.split] = only

    return OneQuestion(config={**config, "process_docs": None, "fewshot_config": {}, "num_fewshot": 0})


# ---- rendering


def _rows(root: Path, given: dict[str, Any]) -> dict[str, object]:
    lettered, path = given["lettered"], root / given["yaml"]
    task = lettered_task(_config(path, lettered=True)) if lettered else _make_task(_config(path))
    _draw_examples(task, given["num_fewshot"])
    random.seed(0)
    task.build_all_requests(limit=given["limit"] or None, rank=0, world_size=1)
    task_row = {
        "yaml": given["yaml"],
        "version": str(task.VERSION),
        "features": list(task.features),
        "targets": task.multiple_target,
        "inputs": task.multiple_input,
        "sampler": _sampler(dict(task.config.generation_kwargs)),
    }
    rows: list[dict[str, Any]] = [
        {
            "prompt": request.args[0],
            "target": _texts(task, request.doc),
            "doc_id": request.doc_id,
            "doc": _plain(request.doc),
        }
        for request in task.instances
    ]
    filters: dict[str, object] = {}
    if lettered:
        rows = [row | task.letters(request.doc) for row, request in zip(rows, task.instances, strict=True)]
        rows = [row for row in rows if row["letter"]]  # others have no right option
    else:
        add_letters(rows)
        # Filters and metrics are known by how the first reference would be graded as a reply.
        filters = _scores(root, {"task": task_row, "doc": rows[0]["doc"], "text": rows[0]["target"][0]})
    return {
        "task": task_row,
        "rows": rows,
        "filters": filters,
        "own": bool(task.config.process_results),
        "letters": all("letter" in row for row in rows),
        "files": _files_read(task),
    }


def _files_read(task: Any) -> list[str]:  # noqa: ANN401
    """Files on this machine that the data are from: those that the task names, and those that were fetched for it."""
    texts = _texts_in([task.config.dataset_path, task.config.dataset_kwargs])
    here = [Path(text).absolute() for text in texts if len(text) < 1000 and Path(text).exists()]
    files = [file for path in here for file in ([path] if path.is_file() else path.rglob("*"))]
    splits = [getattr(split, "cache_files", ()) for split in task.dataset.values()]
    return sorted({*map(str, files), *(file["filename"] for split in splits for file in split)})


def _texts_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list, tuple)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts_in(inner)


def _draw_examples(task: Any, number: int | None) -> None:  # noqa: ANN401
    """Number and seed of the examples, as lm-eval settles them."""
    if number is not None and task.get_config("num_fewshot") != 0:
        task.set_config(key="num_fewshot", value=number)
    elif task.get_config("num_fewshot") is None:
        task.set_config(key="num_fewshot", value=0)
    task.set_fewshot_seed(seed=FEWSHOT_SEED)


def _sampler(asked: dict[str, Any]) -> dict[str, object]:
    """What lm-eval would send beside the prompt."""
    asked.pop("do_sample", None)
    until = asked.pop("until", None) or []
    most = [asked.pop(name, None) for name in ("max_tokens", "max_gen_toks")]
    return {
        "stop": [stop for stop in ([until] if isinstance(until, str) else until) if stop],
        "max_tokens": next((number for number in most if number), MOST_TOKENS),
        "temperature": asked.pop("temperature", 0),
        **asked,
    }


def _texts(task: Any, doc: Any) -> list[str]:  # noqa: ANN401
    """The reference answers."""
    target = task.doc_to_target(doc)
    if task.config.doc_to_choice is not None and isinstance(target, int):
        target = task.doc_to_choice(doc)[target]
    return [str(text) for text in target] if isinstance(target, list) else [str(target)]


def _plain(doc: dict[str, Any]) -> object:
    try:
        return json.loads(json.dumps(doc, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise RefusedError(f"has questions with fields that are no JSON ({error})") from error


# ---- grading


def _scores(root: Path, given: dict[str, Any]) -> dict[str, object]:
    """By filter: what it leaves of a reply, and its score by each metric."""
    from lm_eval.api.instance import Instance

    task, doc = _grader(root, given), given["doc"]
    reply = Instance("generate_until", doc, ("", {}), 0, resps=[given["text"]])
    by_filter: dict[str, object] = {}
    for ensemble in task._filters:  # noqa: SLF001 - lm-eval has no other way to them
        ensemble.apply([reply])
        left = reply.filtered_resps[ensemble.name]
        by_filter[ensemble.name] = {
            "left": left if isinstance(left, str) else str(left),
            "scores": {name: _number(score) for name, score in task.process_results(doc, [left]).items()},
        }
    return by_filter


_graders: dict[str, Any] = {}


def _grader(root: Path, given: dict[str, Any]) -> Any:  # noqa: ANN401
    """The task as it grades a reply, built once in a process unless its files are changed."""
    rendered = given["task"]
    path = (root / rendered["yaml"]).resolve()
    written = [code.stat().st_mtime_ns for code in (path, *path.parent.glob("*.py"))]
    key = json.dumps([str(path), rendered, written])
    if key not in _graders:
        if not path.is_relative_to(root.resolve()):
            raise RefusedError(f"{rendered['yaml']} is not in {root}")
        task = _make_task(_config(path), given["doc"])
        task.features = rendered["features"]
        task.multiple_target, task.multiple_input = rendered["targets"], rendered["inputs"]
        _graders[key] = task
    return _graders[key]


def _number(score: Any) -> float | None:  # noqa: ANN401
    """A score of one reply; None for what only a whole data set has."""
    if hasattr(score, "item") and getattr(score, "size", 0) == 1:
        score = score.item()
    return float(score) if isinstance(score, (int, float)) else None
