"""What lm-eval has rendered and what its groups hold, kept beside the fetched rows: each is asked for once."""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from evalcube.stages.generate.dataset.hub import shelf
from evalcube.stages.generate.errors import TaskError
from evalcube.stages.generate.foreign.bounded import Failure, ProcessLimits, ask

DOOR = "lm-eval"
_RENDERING = ProcessLimits(
    cpu_seconds=3600, wall_seconds=7200, memory=8 << 30, answer_bytes=1 << 30, file_bytes=64 << 30
)
_CODE = (".yaml", ".yml", ".py")


def rendering(name: str, root: str, num_fewshot: int | None, limit: int) -> Mapping[str, Any]:
    """What a task renders to: digest of its file of rows, filters, and whether it grades by code of its own.

    Raises
    ------
    TaskError
        lm-eval is missing, or cannot render it.
    """
    request = {
        "root": root,
        "folder": str(Path.cwd()),
        "name": name,
        "num_fewshot": num_fewshot,
        "limit": limit,
    }

    def rendered() -> tuple[dict[str, Any], Iterable[str]]:
        said = dict(_ask(name, request))
        rows = said.pop("rows")
        files = said.pop("files")
        return {**said, "sha256": _written(name, said.pop("task"), rows)}, files

    return _kept(request, root, rendered)


def members(name: str, root: str) -> list[str]:
    """The tasks of a group or a tag; none where it is neither, or lm-eval is missing."""
    if find_spec(DOOR.replace("-", "_")) is None:
        return []

    line = re.compile(
        rb"^[\"']?task[\"']?:[ \t]*[\"']?" + re.escape(name.encode()) + rb"[\"']?\s*$", re.MULTILINE
    )

    def known() -> tuple[dict[str, Any], Iterable[str]]:
        paths = Path(root or _package()).rglob("*.yaml")
        return {"task": any(line.search(path.read_bytes()) for path in paths)}, ()

    if _kept({"root": root, "task": name}, root, known)["task"]:
        return []  # which is sooner known than what all groups are
    lists = _kept({"root": root}, root, lambda: (_ask(name, {"root": root}), ()))["collections"]
    collections, found, waiting = {*lists}, dict[str, None](), [name] if name in lists else []
    while waiting:
        first = waiting.pop(0)
        if " " in first:
            raise TaskError(f"lm-eval:{name} lists {first}; name its tasks one by one instead", value=name)
        if first in lists:
            waiting[:0] = lists.pop(first)  # once, also where it lists itself
        elif first not in collections:
            found[first] = None
    return list(found)


def _package() -> Path:
    spec = find_spec("lm_eval")
    return Path(spec.origin or "").parent / "tasks" if spec else Path()


def _ask(name: str, request: Mapping[str, object]) -> dict[str, Any]:
    if find_spec("lm_eval") is None:
        raise TaskError(f"lm-eval:{name} needs lm-eval: pip install 'evalcube[lm-eval]'", value=name)
    said = ask(DOOR, request, _RENDERING, fetches=True)
    if isinstance(said, Failure):
        raise TaskError(
            f"lm-eval cannot make lm-eval:{name}: it {said.reason.removeprefix('grader ')}. Its data are fetched by "
            "the machine that plans; where a package is missing, install what the task needs",
            value=name,
        )
    found = cast("dict[str, Any]", said)
    if "refused" in found:
        raise TaskError(f"lm-eval:{name} {found['refused']}", value=name)
    return found


def _kept(
    request: Mapping[str, object], root: str, make: Callable[[], tuple[dict[str, Any], Iterable[str]]]
) -> Mapping[str, Any]:
    """What was made before of a request by this code and lm-eval, unless a file that it is made of has changed."""
    own = sorted(Path(__file__).parent.glob("lm_eval*.py"))
    made_by = [_lm_eval(), *(path.stat().st_mtime_ns for path in own), request]
    record = (
        shelf.folder() / "lm-eval" / f"{hashlib.sha256(json.dumps(made_by).encode()).hexdigest()[:32]}.json"
    )
    code = [str(path) for path in Path(root).rglob("*") if path.suffix in _CODE] if root else []
    try:
        known = json.loads(record.read_bytes())
        if (
            known["files"] == _state(known["files"])
            and known["code"] == _state(code)
            and _is_here(known["made"])
        ):
            return cast("Mapping[str, Any]", known["made"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    made, files = make()
    record.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=record.parent, delete=False, encoding="utf-8") as part:
        json.dump({"made": made, "files": _state(files), "code": _state(code)}, part)
    Path(part.name).replace(record)
    return made


def _is_here(made: Mapping[str, Any]) -> bool:
    return "sha256" not in made or shelf.content(made["sha256"]) is not None


def _state(files: Iterable[str]) -> dict[str, list[int]]:
    """Size and time of change of files, none of those that are gone."""
    found = ((str(file), Path(file)) for file in files)
    return {name: [path.stat().st_size, path.stat().st_mtime_ns] for name, path in found if path.is_file()}


def _lm_eval() -> str:
    try:
        return f"lm_eval {version('lm_eval')}"
    except PackageNotFoundError:
        return "lm_eval"


def _written(name: str, said: Mapping[str, object], rows: Iterable[Mapping[str, object]]) -> str:
    """The digest of the file of a task, which is named by it; each row says what made it."""
    task = {**said, "name": name, "package": _lm_eval()}
    shelf.folder().mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    with tempfile.NamedTemporaryFile("wb", dir=shelf.folder(), delete=False) as part:
        for row in rows:
            data = (json.dumps({**row, "task": task}, sort_keys=True, ensure_ascii=False) + "\n").encode(
                "utf-8", "surrogatepass"
            )
            digest.update(data)
            part.write(data)
    Path(part.name).replace(shelf.folder() / f"{digest.hexdigest()}.jsonl")
    return digest.hexdigest()
