"""Lists what installed packages bring to evalcube: tasks, graders, checks and scorers."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

_GROUPS = "evalcube."


def installed_plugins() -> list[EntryPoint]:
    """The entry points of all of our groups; nothing is loaded."""
    groups = [group for group in entry_points().groups if group.startswith(_GROUPS)]
    return [point for group in groups for point in entry_points(group=group)]
