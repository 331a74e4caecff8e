"""Settings with which Sphinx builds the site: these pages, and the reference from the docstrings of `evalcube`."""

from __future__ import annotations

import logging
import re
import sys
import tempfile
from functools import partial
from operator import attrgetter
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING

from numpydoc.xref import DEFAULT_LINKS

if TYPE_CHECKING:
    from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from reference import NAMES, names

import evalcube

project = "evalcube"
author = copyright = "the evalcube developers"
release = version = evalcube.__version__
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.intersphinx", "numpydoc"]
html_theme = "sphinx_book_theme"
html_title = f"evalcube {release}"
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

nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True

intersphinx_mapping = {
    "python": ("https://docs.python.org/3", None),
    "numpy": ("https://numpy.org/doc/stable", None),
    "xarray": ("https://docs.xarray.dev/en/stable", None),
    "dask": ("https://docs.dask.org/en/stable", None),
    "distributed": ("https://distributed.dask.org/en/stable", None),
    "pandas": ("https://pandas.pydata.org/docs", None),
}
intersphinx_timeout = 10
numpydoc_xref_param_type = True
numpydoc_xref_aliases = {
    **{name: name for name in DEFAULT_LINKS},  # of Python, which need no links
    "Dataset": "xarray.Dataset",
    "DataArray": "xarray.DataArray",
    "DataFrame": "pandas.DataFrame",
    **{name: f"evalcube.results.{name}" for name in evalcube.results.__all__},
    **{name: f"evalcube.{name}" for name in dir(evalcube) if name.endswith("Error")},
}
numpydoc_xref_ignore = {"of", "or", "shape"}

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
default_role = "literal"
"""Single backticks in docstrings stand for code."""
python_maximum_signature_line_length = 100
suppress_warnings = ["ref.python"]
"""A dataclass field may have the name of a public function: links then go to neither."""

REPOSITORY = "https://github.com/evalcube/evalcube/blob/main/"
GENERATED = Path(__file__).parent / "generated"
"""A page for each public name, and the changelog: what is not of today goes."""


def _generate() -> None:
    """Write the pages that are made of docstrings, and the changelog."""
    api = (GENERATED.parent / "api.md").read_text("utf-8")
    pages = {f"evalcube.{name}.rst": _documented(name) for name in names(api)}
    pages["changelog.md"] = (GENERATED.parents[1] / "CHANGELOG.md").read_text("utf-8")
    GENERATED.mkdir(exist_ok=True)
    for page in GENERATED.iterdir():
        if page.name not in pages:
            page.unlink()
    for name, text in pages.items():
        page = GENERATED / name
        if not page.exists() or page.read_text("utf-8") != text:  # else Sphinx would read it again
            page.write_text(text, "utf-8")


def _documented(name: str) -> str:
    """The page of a public name, with its own members if it is a class."""
    item = attrgetter(name)(evalcube)
    title = f"{name}\n{'=' * len(name)}\n\n"
    if not isinstance(item, type):
        return f"{title}.. {'autofunction' if callable(item) else 'py:data'}:: evalcube.{name}\n"
    members = "" if issubclass(item, Exception) else "   :members:\n   :undoc-members:\n"
    if hasattr(item, "model_fields"):
        # What a field may be says the page of the config better than its annotation.
        own = [key for key, value in vars(item).items() if isinstance(value, FunctionType | classmethod)]
        methods = ", ".join(key for key in own if not key.startswith("_"))
        members = (f"   :members: {methods}\n" if methods else "") + "\nFields: :doc:`/config`.\n"
        return f"{title}.. autoclass:: evalcube.{name}(**fields)\n{members}"
    return f"{title}.. autoclass:: evalcube.{name}\n{members}"


def _complete(_app: Sphinx, page: str, source: list[str]) -> None:
    """Complete a page: the menu after ``index.md``, links to their pages in the tables of ``api.md``."""
    text = source[0].replace("](../CHANGELOG.md)", "](generated/changelog.md)")
    # What else lies outside of this folder is no page of the site.
    text = text.replace("](../", f"]({REPOSITORY}")
    if page == "index":
        text += _menu(text)
    elif page == "api":
        below = "\n".join(f"generated/evalcube.{name}" for name in names(text))
        link = partial(re.sub, r"`([\w.]+)`", r"[`\1`](generated/evalcube.\1.rst)")
        text = NAMES.sub(lambda row: link(row[0]), text)
        text += f"\n```{{toctree}}\n:hidden:\n\n{below}\n```\n"
    source[0] = text


def _menu(index: str) -> str:
    """The menu of the site: a group for each heading of the index, with the pages that it links."""
    menu = ""
    for group in re.split(r"(?m)^## ", index)[1:]:
        linked = re.findall(r"\[([^\]]+?)\]\(([\w/-]+)\.(?:md|ipynb)\)", group)
        pages = "\n".join(
            f"{title[0].upper()}{title[1:].replace('`', '')} <{page}>" for title, page in linked
        )
        if pages:
            menu += f"\n```{{toctree}}\n:hidden:\n:caption: {group.splitlines()[0]}\n\n{pages}\n```\n"
    return menu


def _unreached(record: logging.LogRecord) -> bool:
    """Without a network, links to other projects' pages are missing, which fails no build."""
    if record.levelno == logging.WARNING and "failed to reach any of the inventories" in str(record.msg):
        record.levelno, record.levelname = logging.INFO, "INFO"
    return True


def _write_demo(app: Sphinx, problem: Exception | None) -> None:
    """Write a small bundle of the explorer beside the pages."""
    from evalcube.flows.explore.bundle import bundle

    target = Path(app.outdir) / "explorer-demo"
    if problem is None and not target.exists():
        with tempfile.TemporaryDirectory() as folder:
            cube = f"{folder}/capitals.zarr"
            evalcube.run(GENERATED.parents[1] / "examples/capitals.yaml", cube=cube, cache=f"{folder}/cache")
            bundle([cube], target)


def setup(app: Sphinx) -> None:
    """Write what is generated before pages are looked for, and complete those that are read."""
    app.connect("build-finished", _write_demo)
    _generate()
    logging.getLogger("sphinx.sphinx.ext.intersphinx").addFilter(_unreached)
    app.connect("source-read", _complete)
