"""A hook of the build: an editable install makes the package's links to its four folders where an archive lost them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class LinkFolders(BuildHookInterface[Any]):
    """Makes each folder that a wheel maps into the package a part of it in the sources."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatchling gives it
        """Link the folders for an editable install, so that Python and type checkers find them as in a wheel."""
        if version != "editable":
            return
        for folder, place in self.build_config.sources.items():
            link = Path(self.root, place)
            if not link.is_dir():
                # Where links are unknown, git and zip write a file that names the target.
                link.unlink(missing_ok=True)
                link.symlink_to(Path("..", folder))
