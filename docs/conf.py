"""Settings with which Sphinx builds the site: these pages, and the reference from the docstrings of `evalcube`."""

from __future__ import annotations

import re
import sys
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parents[1]))

project = "evalcube"
copyright = "the evalcube developers"
extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc"]
html_theme = "sphinx_book_theme"
html_title = "evalcube"
html_static_path = ["_static"]
html_css_files = ["narrow.css"]
html_theme_options = {
    "repository_url": "https://github.com/evalcube/evalcube",
    "use_repository_button": True,
    "use_download_button": False,
    "navbar_persistent": [],  # the menu has the search already
}
html_context = {"default_mode": "auto"}
"""Light or dark as the reader's system is; without it the theme's script complains in the console."""
html_show_sphinx = False
myst_heading_anchors = 4
"""Headings down to this level have the anchors that they have on GitHub."""

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
default_role = "literal"
"""Single backticks in docstrings stand for code."""
python_maximum_signature_line_length = 100
suppress_warnings = ["ref.python"]
"""A dataclass field may have the name of a public function: links then go to neither."""

REPOSITORY = "https://github.com/evalcube/evalcube/blob/main/"

_ENTRY = re.compile(r"^\| `([\w.]+)` \|", re.MULTILINE)


def _complete(_app: Sphinx, page: str, source: list[str]) -> None:
    """Complete a page: the menu after ``index.md``, docstrings below the names of ``api.md``."""
    # What lies outside of this folder is no page of the site.
    source[0] = source[0].replace("](../", f"]({REPOSITORY}")
    if page == "index":
        source[0] += _menu(source[0])
    elif page == "api":
        source[0] = _with_docstrings(source[0])


def _menu(index: str) -> str:
    """The menu of the site: a group for each heading of the index, with the pages that it links."""
    menu = ""
    for group in re.split(r"(?m)^## ", index)[1:]:
        linked = re.findall(r"(?m)^- \[(.+?)\]\((\w[\w-]*)\.md\)", group)
        pages = "\n".join(f"{title.replace('`', '')} <{page}>" for title, page in linked)
        if pages:
            menu += f"\n```{{toctree}}\n:hidden:\n:caption: {group.splitlines()[0]}\n\n{pages}\n```\n"
    return menu


def _with_docstrings(text: str) -> str:
    """The list of names, with the docstrings of each family of them below its table."""
    families = re.split(r"(?m)^(?=## )", text)
    for place, family in enumerate(families):
        entries = "\n\n".join(map(_documented, _ENTRY.findall(family)))
        if entries:
            families[place] = f"{family.rstrip()}\n\n```{{eval-rst}}\n{entries}\n```\n\n"
    return "".join(families)


def _documented(name: str) -> str:
    """Return the directive that shows a public name, with its own members if it is a class."""
    import evalcube

    item = attrgetter(name)(evalcube)
    if not isinstance(item, type):
        return f".. {'autofunction' if callable(item) else 'py:data'}:: evalcube.{name}"
    members = "" if issubclass(item, Exception) else "\n   :members:\n   :undoc-members:"
    return f".. autoclass:: evalcube.{name}{members}"


def setup(app: Sphinx) -> None:
    """Connect the reference with the reading of pages."""
    app.connect("source-read", _complete)
