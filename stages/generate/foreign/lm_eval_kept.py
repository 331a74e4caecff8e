"""What lm-eval has rendered and what its groups hold, kept beside the fetched rows: each is asked for once."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from evalcube.stages.generate.dataset.hub import shelf
from evalcube.stages.generate.errors import TaskError
from evalcube.stages.generate.foreign.bounded import Failure, ProcessLimits, ask, version_of
from evalcube.stages.generate.foreign.lm_eval_letters import LETTERED

DOOR = "lm-eval"
_RENDERING = ProcessLimits(
    cpu_seconds=3600, wall_seconds=7200, memory=8 << 30, answer_bytes=1 << 30, file_bytes=64 << 30
)
_CODE = (".yaml", ".yml", ".py")


def rendering(name: str, root: str, num_fewshot: int | None, limit: int) -> Mapping[str, Any]:
    """What a task renders to: digest of its file of rows, filters, and whether it grades by code of its own."""
    own_name = name.removeprefix(LETTERED)
    index = _index(name, root)
    if own_name not in index["tasks"]:
        listed = ", ".join(index["lists"].get(own_name, ())[:8])
        why = (
            f"is a group or tag of {listed}; name one of its tasks"
            if listed
            else f"is not in {root or 'lm-eval'}"
        )
        raise TaskError(f"lm-eval:{name} {why}", value=name)
    request = {"root": root, "folder": str(Path.cwd()), "yaml": index["tasks"][own_name]}
    request |= {"lettered": name != own_name, "num_fewshot": num_fewshot, "limit": limit}

    def render() -> tuple[dict[str, Any], Iterable[str]]:
        answer = dict(_ask(name, request))
        rows, files = answer.pop("rows"), answer.pop("files")
        return {**answer, "sha256": _write(name, answer.pop("task"), rows)}, files

    return _once(request, root, render)


def members(name: str, root: str) -> list[str]:
    """The tasks of a group or a tag; none where it is neither, or lm-eval is missing."""
    if find_spec("lm_eval") is None:
        return []
    index = _index(name, root)
    lists, tasks = dict(index["lists"]), dict[str, None]()
    waiting = [name] if name in lists and name not in index["tasks"] else []
    while waiting:
        first = waiting.pop(0)
        if " " in first:
            raise TaskError(f"lm-eval:{name} lists {first}; name its tasks one by one instead", value=name)
        if first in lists:
            waiting[:0] = lists.pop(first)  # once, also where it lists itself
        elif first not in index["lists"]:
            tasks[first] = None
    return list(tasks)


def _index(name: str, root: str) -> Mapping[str, Any]:
    return _once({"root": root}, root, lambda: (_ask(name, {"root": root}), ()))


def _ask(name: str, request: Mapping[str, object]) -> dict[str, Any]:
    if find_spec("lm_eval") is None:
        raise TaskError(f"lm-eval:{name} needs lm-eval: pip install 'evalcube[lm-eval]'", value=name)
    answer = ask(DOOR, request, _RENDERING, fetches=True)
    if isinstance(answer, Failure):
        raise TaskError(
            f"lm-eval cannot make lm-eval:{name}: it {answer.reason.removeprefix('grader ')}. Its data are fetched by "
            "the machine that plans; where a package is missing, install what the task needs",
            value=name,
        )
    rendered = cast("dict[str, Any]", answer)
    if "refused" in rendered:
        raise TaskError(f"lm-eval:{name} {rendered['refused']}", value=name)
    return rendered


def _once(
    request: Mapping[str, object], root: str, make: Callable[[], tuple[dict[str, Any], Iterable[str]]]
) -> Mapping[str, Any]:
    """What came of a request before, by this code and lm-eval, unless a file that it is made of has changed."""
    makers = [_package(), _state(map(str, Path(__file__).parent.glob("lm_eval*.py"))), request]
    digest = hashlib.sha256(json.dumps(makers, sort_keys=True).encode()).hexdigest()
    record = shelf.folder() / "lm-eval" / f"{digest[:32]}.json"
    code = _state(str(path) for path in Path(root).rglob("*") if path.suffix in _CODE) if root else {}
    with suppress(OSError, ValueError, KeyError, TypeError):
        before = json.loads(record.read_bytes())
        there = "sha256" not in before["result"] or shelf.content(before["result"]["sha256"])
        if there and before["code"] == code and before["files"] == _state(before["files"]):
            return cast("Mapping[str, Any]", before["result"])
    result, files = make()
    record.parent.mkdir(parents=True, exist_ok=True)
    shelf.write_json(record, {"result": result, "files": _state(files), "code": code})
    return result


def _package() -> str:
    return f"lm_eval {version_of('lm_eval')}".strip()


def _state(files: Iterable[str]) -> dict[str, list[int]]:
    """Size and time of change of files, none of those that are gone."""
    paths = (path for path in map(Path, files) if path.is_file())
    return {str(path): [path.stat().st_size, path.stat().st_mtime_ns] for path in paths}


def _write(name: str, task: Mapping[str, object], rows: Iterable[Mapping[str, object]]) -> str:
    """Write the file of a task, each row of which says what made it, and return the digest that names it."""
    maker = {**task, "name": name, "package": _package()}
    lines = (json.dumps({**row, "task": maker}, sort_keys=True, ensure_ascii=False) + "\n" for row in rows)
    shelf.folder().mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    with tempfile.NamedTemporaryFile("wb", dir=shelf.folder(), delete=False) as part:
        for data in (line.encode("utf-8", "surrogatepass") for line in lines):
            digest.update(data)
            part.write(data)
    Path(part.name).replace(shelf.folder() / f"{digest.hexdigest()}.jsonl")
    return digest.hexdigest()
