"""Pages say what is there: links lead somewhere, every public name is listed, and a term is explained once."""

import re
import tomllib
from collections import Counter

import evalcube
from tests.docs.pages import PAGES, ROOT
from tests.docs.test_reference import reference

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def prose(page):
    """The text of a page without its blocks of code."""
    return re.sub(r"^( *)```.*?^\1```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(page):
    """Where links into a page may lead: its headings as GitHub writes them, lower case and without marks."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken(page, link):
    """Why a relative link of a page leads nowhere; empty if it leads somewhere."""
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    if not target.exists():
        return f"{page.name}: {link}: no such file"
    if anchor and anchor not in anchors(target):
        return f"{page.name}: {link}: no such heading"
    return ""


OURS = re.compile(
    r"https://(?:github.com/evalcube/evalcube/blob|raw.githubusercontent.com/evalcube/evalcube)/main/"
)
"""The readme is shown by package indexes too, where only whole addresses lead anywhere."""


def test_links__lead_somewhere():
    readme, linked = ROOT / "README.md", {page: LINK.findall(prose(page)) for page in PAGES}
    assert [link for link in linked[readme] if "://" not in link] == []

    linked[readme] = [OURS.sub("", link) for link in linked[readme]]
    relative = [(page, link) for page, links in linked.items() for link in links if "://" not in link]

    assert [why for why in (broken(page, link) for page, link in relative) if why] == []


def test_paths__of_our_files_are_there():
    """What a page names in backticks below a folder of ours exists, as does what a star stands for."""
    ours = r"`((?:tests|stages|flows|storage|deploy|examples|benchmarks)/[\w./*-]+)`"
    named = [(page.name, path) for page in PAGES for path in re.findall(ours, prose(page))]

    assert [(page, path) for page, path in named if not list(ROOT.glob(path.rstrip("/")))] == []


def test_broken__finds_files_and_headings_that_are_not_there():
    page = ROOT / "docs" / "index.md"

    assert broken(page, "sweeps.md#where-to-measure") == broken(page, "../README.md") == ""
    assert broken(page, "swoops.md").endswith("no such file")
    assert broken(page, "sweeps.md#where-to-eat").endswith("no such heading")


def test_index__leads_to_every_page():
    index = ROOT / "docs" / "index.md"

    linked = {link.partition("#")[0] for link in LINK.findall(prose(index))}

    assert {page.name for page in index.parent.glob("*.md")} - linked == {"index.md"}


def test_api__lists_every_public_name_once():
    listed = reference.names((ROOT / "docs" / "api.md").read_text(encoding="utf-8"))
    modules = ("config", "stats", "results", "plugins")
    below = [f"{name}.{one}" for name in modules for one in getattr(evalcube, name).__all__]

    # Keys of configs have a page of their own.
    assert Counter(listed) == Counter([*set(evalcube.__all__).difference(modules, ["config"]), *below])


def test_install__lists_every_extra():
    listed = re.findall(r"^\| `([\w-]+)` \|", (ROOT / "docs" / "install.md").read_text(), re.MULTILINE)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]

    assert set(listed) == extras.keys() - {"dev", "docs"}


def test_glossary__explains_each_term_once():
    terms = re.findall(r"^### (.+)\n(.*)$", prose(ROOT / "docs" / "glossary.md"), re.MULTILINE)

    assert len(terms) > 40
    assert [term for term, count in Counter(term.lower() for term, _ in terms).items() if count > 1] == []
    assert [term for term, text in terms if not text.endswith(".")] == []
