"""Addresses of the Hub."""

from __future__ import annotations

from evalcube.stages.generate.dataset.hub.address import shareable


def test_shareable__tells_nothing_of_this_machine():
    params = {"include_path": "/home/ada/tasks", "file": "/home/ada/a.jsonl", "sha256": "0" * 64}

    assert shareable(params) == {"include_path": "tasks", "file": "a.jsonl", "sha256": "0" * 64}
