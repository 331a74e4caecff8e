"""What differs between two sweeps, in words, from their descriptions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_CRITERIA = ("assertions", "rubric")


def spec_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What differs between the sweep in a cube and the one to run, in words; empty if they are the same sweep."""
    found = [
        f"{name} is {old.get(name)!r} in the cube and {new.get(name)!r} in the config"
        for name in ("format", "seed")
        if old.get(name) != new.get(name)
    ]
    before = {_evaluation_name(item): item for item in old.get("evaluations", ())}
    after = {_evaluation_name(item): item for item in new.get("evaluations", ())}
    found += _set_differences("evaluation", before, after)
    for name in before.keys() & after.keys():
        for part in ("request_model", "template", "sampler"):
            if before[name][part] != after[name][part]:
                was, now = before[name][part], after[name][part]
                found.append(
                    f"{part} of evaluation {name} is {_short(was)} in the cube and {_short(now)} in the config"
                )
    found += _task_differences(old, new)
    if not found and _ordered(old) != _ordered(new):
        found.append("models, tasks or points stand in another order")
    return found


def _task_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    before = {task["label"]: task for task in old.get("tasks", ())}
    after = {task["label"]: task for task in new.get("tasks", ())}
    found = _set_differences("task", before, after)
    for name in before.keys() & after.keys():
        makers = [f"{task[name]['name']} version {task[name]['version']}" for task in (before, after)]
        if makers[0] != makers[1]:
            found.append(f"generator of task {name} is {makers[0]} in the cube and {makers[1]} here")
            continue
        changed = _changed_files(before[name], after[name])
        found += changed or _point_differences(name, before[name], after[name])
    return found


def _point_differences(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Points by their identity: what a data set holds counts, not where it lies."""
    before, after = ({point["cell_id"]: point for point in task["points"]} for task in (old, new))
    only_old, only_new = (
        {json.dumps(one[key]["params"], sort_keys=True): None for key in one if key not in other}
        for one, other in ((before, after), (after, before))
    )
    found = _set_differences(f"point of task {name}", only_old, only_new)
    for key in before.keys() & after.keys():
        tiers = before[key]["tiers"], after[key]["tiers"]
        if tiers[0] != tiers[1]:
            params = json.dumps(after[key]["params"], sort_keys=True)
            found.append(f"tiers of {name} {params} are {tiers[0]} in the cube and {tiers[1]} in the config")
    return found


def _changed_files(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Data files that are the same by name and not by content."""
    before, after = (
        {p["params"]["file"]: p["params"]["sha256"] for p in task["points"] if "sha256" in p["params"]}
        for task in (old, new)
    )
    return [
        f"file '{file}' has changed since the cube was made: its SHA-256 was {before[file][:12]}…, and is "
        f"{after[file][:12]}… now; put the old file back to go on"
        for file in before.keys() & after.keys()
        if before[file] != after[file]
    ]


def _set_differences(kind: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    gone = [f"{kind} {name} is in the cube only" for name in before if name not in after]
    return gone + [f"{kind} {name} is in the config only" for name in after if name not in before]


def _evaluation_name(item: Mapping[str, Any]) -> str:
    return f"{item['model']} / {item['template']['name']} / {item['sampler']['name']}"


def _ordered(spec: Mapping[str, Any]) -> list[object]:
    evaluations = [_evaluation_name(item) for item in spec.get("evaluations", ())]
    cells = [[point["cell_id"] for point in task["points"]] for task in spec.get("tasks", ())]
    return [evaluations, [task["label"] for task in spec.get("tasks", ())], cells]


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else text[:77] + "..."


def criteria_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What two descriptions of sweeps ask of outputs differently, in words; empty if it is the same.

    Parameters
    ----------
    old, new
        Specs of the cube and of the config; tasks that only one of them has are passed over.
    """
    found = []
    before = {task["label"]: task for task in old.get("tasks", ())}
    for task in new.get("tasks", ()):
        other = before.get(task["label"], task)
        for field in _CRITERIA:
            was, now = other.get(field), task.get(field)
            if was != now:
                found += [f"{field} of task {task['label']} {_changed(was, now)}"]
    names = [{judge["name"]: judge for judge in spec.get("judges", ())} for spec in (old, new)]
    for name in names[0] | names[1]:
        was, now = names[0].get(name), names[1].get(name)
        if was and now and was != now:
            fields = ", ".join(field for field in now if now[field] != was.get(field))
            found.append(f"judge {name} has another {fields}")
        elif was != now:
            found.append(f"judge {name} is in the {'cube' if was else 'config'} only")
    if not found and list(names[0]) != list(names[1]):
        found.append("judges stand in another order")
    if old.get("asserted_prices") != new.get("asserted_prices"):
        found.append("prices have changed, and an assertion (cost_max) depends on them")
    return found


def _changed(was: object, now: object) -> str:
    if was and now:
        return "have changed" if isinstance(now, list) else "has changed"
    where = "cube" if was else "config"
    return f"{'are' if isinstance(was or now, list) else 'is'} in the {where} only"
