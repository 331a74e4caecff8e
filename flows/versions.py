"""What is installed, for reports of defects."""

from __future__ import annotations

import platform
import re
from importlib import metadata


def show_versions() -> None:
    """Print the versions of evalcube and what it needs, for a bug report.

    Returns
    -------
    None
        It is printed.
    """
    lines = {
        "evalcube": metadata.version("evalcube"),
        "python": platform.python_version(),
        "system": platform.platform(),
    }
    for requirement in metadata.requires("evalcube") or ():
        if (name := re.match(r"[\w.-]+", requirement)) and name[0] not in lines:
            try:
                lines[name[0]] = metadata.version(name[0])
            except metadata.PackageNotFoundError:
                continue  # an extra that is not installed
    width = max(map(len, lines))
    for package, version in lines.items():
        print(f"{package:{width}}  {version}")  # noqa: T201
