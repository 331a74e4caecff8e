"""Brings the data sets of the hub that suites and configs name to this machine, and says what is here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evalcube.flows.config.kept_questions import nodes
from evalcube.flows.config.near_names import did_you_mean
from evalcube.flows.config.raw_config import written_config
from evalcube.flows.config.recipes import suite_names, suite_section
from evalcube.flows.config.secrecy import show
from evalcube.flows.errors import SweepError
from evalcube.stages.generate.dataset.hub import shelf
from evalcube.stages.generate.dataset.hub.address import Address, is_hub
from evalcube.stages.generate.dataset.hub.fetch import fetch


def fetch_data(
    targets: Sequence[str], tell: Callable[[shelf.FetchedRows], None] = lambda _: None
) -> list[shelf.FetchedRows]:
    """Fetch what addresses, suites and configs name, as the hub has it now; what is here already is not sent again."""
    wanted = dict.fromkeys(Address.parse(text) for target in targets for text in addresses(target))
    records = []
    for address in wanted:
        record = (shelf.find(str(address)) if address.is_pinned else None) or fetch(address)
        tell(replace(record, asked=str(address)))  # however it was asked for before
        records.append(record)
    return records


def addresses(target: str) -> list[str]:
    """The addresses on the hub that a target names, in order."""
    if is_hub(target):
        return [target]
    texts = list(dict.fromkeys(_hub_addresses(_config_of(target), {target})))
    if not texts:
        raise SweepError(f"{show(target)} names no data set of the hub", "There is nothing to fetch for it")
    return texts


def _config_of(target: str) -> Mapping[str, object]:
    path = Path(target)
    if path.is_file():
        return written_config(path)
    if target in suite_names():
        return suite_section(target)
    raise SweepError(
        f"{show(target)} is no address (hf://OWNER/NAME), no file and no suite",
        did_you_mean(target, suite_names(), "Suites"),
    )


def _hub_addresses(config: Mapping[str, object], seen: set[str]) -> Iterator[str]:
    """All texts of a config that are addresses, and those of the suites that its tasks are taken from."""
    for node in nodes(config.get("tasks")):
        if isinstance(node, str) and is_hub(node):
            yield node
        if isinstance(node, Mapping):
            yield from _examples(node)
        suite = node.get("suite") if isinstance(node, Mapping) else None
        if isinstance(suite, str) and suite in suite_names() and suite not in seen:
            seen.add(suite)
            yield from _hub_addresses(suite_section(suite), seen)


def _examples(params: Mapping[str, object]) -> Iterator[str]:
    """The address of another split, where params take examples from one."""
    file, shots = params.get("file"), params.get("fewshot")
    source = shots.get("from") if isinstance(shots, Mapping) else None
    split = source.get("split") if isinstance(source, Mapping) and not source.get("file") else None
    if isinstance(file, str) and is_hub(file) and isinstance(split, str):
        yield str(replace(Address.parse(file), split=split))


def data_here() -> list[dict[str, Any]]:
    """What was fetched to this machine: each address with its source, commit, licence, digest and size."""
    return [record_fields(record) for record in shelf.records()]


def record_fields(record: shelf.FetchedRows) -> dict[str, Any]:
    """A record as JSON values."""
    return {**vars(record), "pinned": record.is_pinned, "path": str(shelf.content(record.sha256))}
