"""What is shipped: the sdist and the wheel, the pinned versions, the workflows, and the texts of tracked files."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import tarfile
import zipfile
from collections import Counter
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from pkgutil import resolve_name

import grimp
import pytest
from packaging.metadata import Metadata

from tests.installed import build, environment_without, run, unpack

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("flows", "stages", "storage", "deploy")
MOST_LINES = 450

# Written so that no line of this file matches: character classes and alternatives instead of plain words.
FORBIDDEN = re.compile(
    rb"(?<![\w.])/(?:work|root|tmp/w|opt/pypi[\w-]*|opt/wheels)/"
    rb"|(?:pypi|pythonhosted|npmjs|deb[.]debian)[.](?:org|com)"
)


def package_files():
    """What is below `evalcube`, its links to the rooms followed."""
    for folder, _, names in os.walk(ROOT / "evalcube", followlinks=True):
        for name in names:
            if not name.endswith(".pyc"):
                yield (Path(folder) / name).relative_to(ROOT).as_posix()


def project_files():
    """Tracked files and those that soon will be; in an unpacked sdist, every file."""
    if (ROOT / ".git").exists():
        command = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
        listed = (ROOT / name for name in run(*command, cwd=ROOT).split("\0") if name)
    else:
        hidden_or_built = re.compile(r"(^|/)(\.(?!ci/|github/)[^/]+|__pycache__|build|dist|results)/")
        listed = (p for p in ROOT.rglob("*") if not hidden_or_built.search(p.relative_to(ROOT).as_posix()))
    return sorted({path for path in listed if path.is_file()})


# The sdist


def test_sdist__holds_each_file_of_the_project_once(sdist):
    with tarfile.open(sdist) as archive:
        names = [member.name.partition("/")[2] for member in archive]

    assert set(names) == {"PKG-INFO", *(path.relative_to(ROOT).as_posix() for path in project_files())}
    assert len(names) == len(set(names))


def test_sdist__is_installed_for_editing_without_links(sdist, tmp_path):
    sources = unpack(sdist, tmp_path / "unpacked")
    (sources / "evalcube" / "flows").write_text("../flows")  # a link where links are unknown
    python = environment_without(tmp_path / "environment")

    run(
        python,
        "-m",
        "pip",
        "install",
        "--no-deps",
        "--no-index",
        "--no-build-isolation",
        "-e",
        sources,
        cwd=tmp_path,
    )

    imports = "; ".join(f"import evalcube.{room}" for room in ROOMS)
    out = run(python, "-c", f"{imports}; print(evalcube.flows.__file__)", cwd=tmp_path)
    assert Path(out.strip()) == sources / "evalcube" / "flows" / "__init__.py"


@pytest.mark.parametrize("name", ["PKG-INFO", "METADATA"])
def test_metadata__is_what_an_index_takes(name, sdist, wheel):
    if name == "METADATA":
        archive = zipfile.ZipFile(wheel)
        (path,) = (path for path in archive.namelist() if path.endswith("/METADATA"))
        text = archive.read(path)
    else:
        with tarfile.open(sdist) as archive:
            text = archive.extractfile(f"{sdist.name.removesuffix('.tar.gz')}/{name}").read()

    metadata = Metadata.from_email(text, validate=True)

    assert (metadata.name, metadata.description_content_type) == ("evalcube", "text/markdown")
    assert re.findall(r"\]\((?!https://|#)[^)]*\)", metadata.description) == []


# The wheel


def test_wheel__of_the_sdist_is_that_of_the_checkout(wheel, tmp_path):
    ours = build(ROOT, tmp_path)

    assert zipfile.ZipFile(wheel).namelist() == zipfile.ZipFile(ours).namelist()
    assert wheel.read_bytes() == ours.read_bytes()


def test_wheel__holds_one_package_and_nothing_else(wheel):
    names = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}

    (metadata,) = (name for name in names if name.endswith(".dist-info"))
    assert names == {"evalcube", metadata}


def test_wheel__holds_each_file_of_the_package(wheel):
    shipped = set(zipfile.ZipFile(wheel).namelist())

    ours = set(package_files())

    assert ours == {name for name in shipped if ".dist-info/" not in name}
    assert {"evalcube/py.typed", *(f"evalcube/{room}/__init__.py" for room in ROOMS)} < ours


def test_wheel__holds_the_licence(wheel):
    archive = zipfile.ZipFile(wheel)

    (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/licenses/LICENSE"))

    assert archive.read(name) == (ROOT / "LICENSE").read_bytes()


REST = """
import importlib, sys
from evalcube.__main__ import main

modules = sys.argv[1:]
for words in ("report results/capitals.zarr -o report.html", "leaderboard results/capitals.zarr --json"):
    sys.argv = ["evalcube", *words.split()]
    try:
        main()
    except SystemExit as end:
        assert not end.code, words
for name in modules:
    module = importlib.import_module(name)
    assert module.__file__.startswith(sys.prefix), module.__file__
"""


def test_wheel__measures_reports_and_imports_each_module_without_the_sources(wheel_python, tmp_path):
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    modules = sorted(
        name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        for name in package_files()
        if name.endswith(".py") and not name.endswith("__main__.py")
    )

    run(wheel_python.with_name("evalcube"), "run", "examples/capitals.yaml", "--quiet", cwd=tmp_path)
    _, board = run(wheel_python, "-I", "-c", REST, *modules, cwd=tmp_path).split("\n", 1)

    assert len(modules) > 400
    assert [row["model_name"] for row in json.loads(board)["rows"]] == ["after", "before"]
    assert "after" in (tmp_path / "report.html").read_text("utf-8")


READERS = """
import sys
from importlib.resources import files
sys.path.insert(0, sys.argv[1])
from evalcube.flows.config import recipes, suites
from evalcube.flows.config.plugin import plugin_files
from evalcube.flows.explore.server import own_files
from evalcube.flows.share.publish import card
from evalcube.stages.analyze.render import report
from evalcube.stages.generate.answers.cues import phrases
from evalcube.stages.generate.foreign.gym import catalogue
from evalcube.stages.generate.material import material

read = [
    *map(recipes.suite_text, recipes.suite_names()), *map(material, ("films", "stories", "wordings", "words")),
    *own_files().values(), *plugin_files("word-games").values(), suites.initial_config(), report._script(),
    report._page(()), catalogue(), phrases("units_that_touch"),
    files(card.__package__).joinpath("card.md.j2").read_text("utf-8"),
]
assert suites.__file__.startswith(sys.argv[1]) and all(read)
print(len(read))
"""


def test_wheel__its_data_files_are_read_wherever_its_modules_are(wheel, wheel_python, tmp_path):
    data = [name for name in package_files() if Path(name).suffix not in (".py", ".pyi", ".typed")]
    aside = (
        "kubernetes/",
        "local-model.txt",
        "example.jsonl",
        "report.css",
    )  # for others, by path, by a template

    out = run(wheel_python, "-I", "-c", READERS, wheel, cwd=tmp_path)

    assert int(out) == len([name for name in data if not any(part in name for part in aside)])


@pytest.mark.integration
@pytest.mark.timeout(3000)
def test_wheel__passes_the_tests_of_commands_without_the_sources(sdist, wheel_python, tmp_path):
    folder = unpack(sdist, tmp_path / "unpacked")
    for package in ("evalcube", *ROOMS):
        shutil.rmtree(folder / package)

    out = run(wheel_python, "-m", "pytest", "-n", "2", "-m", "not integration", "tests/flows/cli", cwd=folder)

    assert int(re.search(r"(\d+) passed", out)[1]) > 200


# Texts


@pytest.mark.cluster
def test_project_files__name_no_machine_path_and_no_registry_host():
    hits = [
        f"{path.relative_to(ROOT)}:{number}: {line.decode(errors='replace').strip()}"
        for path in project_files()
        for number, line in enumerate(path.read_bytes().splitlines(), 1)
        if FORBIDDEN.search(line)
    ]

    assert hits == []


@pytest.mark.parametrize(
    ("parts", "refused"),
    [
        (("see ", "/", "work", "/main"), True),
        (("'", "/", "root", "/x'"), True),
        (("https://", "pypi", ".", "org/simple"), True),
        (("https://files.", "pythonhosted", ".", "org"), True),
        (("docs", "/", "work", "/flow"), False),
        (("https://example.org",), False),
    ],
    ids=["checkout", "home of root", "index", "files of an index", "relative path", "other host"],
)
def test_forbidden__finds_paths_and_hosts_only(parts, refused):
    assert bool(FORBIDDEN.search("".join(parts).encode())) is refused


@pytest.mark.cluster
def test_project_files__modules_stay_short():
    lengths = {
        path.relative_to(ROOT).as_posix(): len(path.read_bytes().splitlines())
        for path in project_files()
        if path.suffix == ".py"
    }

    too_long = {name: lines for name, lines in lengths.items() if lines >= MOST_LINES}

    assert lengths
    assert too_long == {}


@pytest.mark.cluster
def test_project_files__scripts_and_styles_have_no_long_line():
    sources = [path for path in project_files() if path.suffix in (".js", ".css")]

    too_long = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sources
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if len(line) > 120
    ]

    assert sources
    assert too_long == []


LONG = {"run"}
"""Names of the functions above 60 lines: those that start a run."""


def test_modules__a_class_name_stands_once_and_functions_are_short():
    names, long = Counter(), set()
    for path in (path for room in ROOMS for path in (ROOT / room).rglob("*.py")):
        # one tree at a time: together they fill the memory
        for node in statements(ast.parse(path.read_bytes()).body):
            if isinstance(node, ast.ClassDef):
                names[node.name] += 1
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and lines_of(node) > 60:
                long.add(node.name)

    assert [name for name, count in names.items() if count > 1] == []
    assert long <= LONG


def test_benchmarks__import_what_exists():
    names = [
        f"{node.module}.{name.name}"
        for path in sorted((ROOT / "benchmarks").glob("*.py"))
        for node in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in ("evalcube", "tests")
        for name in node.names
    ]

    assert names
    for name in names:  # a module, or what one has; an error names it
        resolve_name(name)


def statements(body):
    """Statements and those within them: what they are made of takes much longer to look through."""
    for node in body:
        yield node
        for field in ("body", "handlers", "orelse", "finalbody", "cases"):
            yield from statements(getattr(node, field, ()))


def lines_of(function):
    """Its lines without its docstring."""
    told = (ast.get_docstring(function) or "").splitlines()
    return function.end_lineno - function.lineno + 1 - len(told)


def test_modules__none_imports_itself_by_way_of_others():
    graph = grimp.build_graph("evalcube", exclude_type_checking_imports=True, cache_dir=None)

    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}

    assert any(imports.values())
    assert circle(imports) == []


def test_circle__is_found_however_long():
    assert set(circle({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})) == {"a", "b", "c"}
    assert circle({"a": {"b", "c"}, "b": {"c"}}) == []


def circle(imports):
    """Modules of which each imports the one before it, from one back to itself; none where there is no such."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return error.args[1]
    return []
