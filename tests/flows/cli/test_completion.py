"""What the shell offers at the Tab key, asked as shells ask, and in real shells."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from evalcube.flows.cli import completion
from evalcube.flows.cli.app import app
from tests.tiers import need
from tests.waiting import PATIENCE

ROOT = Path(__file__).resolve().parents[3]
HOSTILE = ["al\x1b[2Jpha", "$(touch broken)", "`id`", "a'b", 'a"b', "a b", "-rf", "a;b", "a\\b", "a\nb", ""]


def cube(folder, name, models=("alpha", "beta"), tasks=("sort",)):
    """The metadata of a cube, as far as completion reads it."""
    evaluations = [
        {"model": model, "template": {"name": "plain"}, "sampler": {"name": f"s{index}"}}
        for index, model in enumerate(models)
    ]
    spec = {"evaluations": evaluations, "tasks": [{"label": label, "name": "sort"} for label in tasks]}
    return written(folder, name, json.dumps({"attributes": {"spec": spec}}))


def written(folder, name, text):
    path = folder / name
    path.mkdir(parents=True)
    (path / "zarr.json").write_text(text)
    return path


def offered(line, tmp_path, monkeypatch):
    """What fish is offered for a line: its part before each tab."""
    monkeypatch.chdir(tmp_path)
    env = {
        "_EVALCUBE_COMPLETE": "complete_fish",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        "_TYPER_COMPLETE_ARGS": f"evalcube {line}",
    }
    result = CliRunner().invoke(app, [], env=env, prog_name="evalcube")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return [row.partition("\t")[0] for row in result.stdout.splitlines() if row]


# What is offered


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("status ", ["top.zarr", "results/a.zarr", "results/deep/er/b.zarr"]),
        ("status t", ["top.zarr"]),
        ("report results/", ["results/a.zarr", "results/deep/er/b.zarr"]),
        ("table ./results/a", ["./results/a.zarr"]),
        ("analyze cost top", ["top.zarr"]),
        ("upsample top", ["top.zarr"]),
        ("cache gc cache --keep top", ["top.zarr"]),
        ("status nothing", []),
        ("status gone/", []),
        ("show top.zarr --model ", ["alpha", "beta"]),
        ("show top.zarr --model=b", ["beta"]),
        ("show --model alpha top.zarr --task ", ["sort"]),
        ("verdict top.zarr --control al", ["alpha"]),
        ("compare top.zarr ", ["alpha", "beta"]),
        ("upsample top.zarr --task s", ["sort"]),
        ("show gone.zarr --model ", []),
        ("tasks ari", ["arithmetic"]),
        ("sample ari", ["arithmetic"]),
        ("tasks none", []),
    ],
)
def test_completion__offers(line, expected, tmp_path, monkeypatch):
    for name in ("top.zarr", "results/a.zarr", "results/deep/er/b.zarr", ".hidden/c.zarr"):
        cube(tmp_path, name)
    (tmp_path / "file.zarr").write_text("")
    (tmp_path / "results" / "loop").symlink_to(tmp_path)

    assert sorted(offered(line, tmp_path, monkeypatch)) == sorted(expected)


def test_completion__evaluations_of_one_model_are_offered_by_number(tmp_path, monkeypatch):
    cube(tmp_path, "c.zarr", models=("alpha", "beta", "alpha"))

    assert offered("show c.zarr --model ", tmp_path, monkeypatch) == ["0", "beta", "2"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"attributes": 3}',
        '{"attributes": {"spec": {"evaluations": [3, {"model": {}}, {"model": null}], "tasks": [3, {}]}}}',
        "[" * 100_000,
        '{"attributes": {"spec": {"evaluations": 3}}}',
        "\udcff\x00",
    ],
    ids=["empty", "cut", "list", "null", "number", "odd rows", "deep", "no rows", "bytes"],
)
def test_completion__nothing_is_offered_of_a_damaged_cube(text, tmp_path, monkeypatch):
    path = written(tmp_path, "c.zarr", "")
    (path / "zarr.json").write_bytes(text.encode("utf-8", "surrogateescape"))

    assert offered("show c.zarr --model ", tmp_path, monkeypatch) == []
    assert offered("show c.zarr --task ", tmp_path, monkeypatch) == []


def test_completion__a_pipe_in_the_place_of_metadata_does_not_hang(tmp_path, monkeypatch):
    (tmp_path / "c.zarr").mkdir()
    os.mkfifo(tmp_path / "c.zarr" / "zarr.json")

    assert offered("show c.zarr --model ", tmp_path, monkeypatch) == []


def test_completion__names_that_a_shell_could_evaluate_are_not_offered(tmp_path, monkeypatch):
    cube(tmp_path, "c.zarr", models=("ok", *HOSTILE), tasks=("ok", *HOSTILE))
    for name in ("$(touch broken).zarr", "a'b.zarr", "a b.zarr", "a\x1bb.zarr"):
        (tmp_path / name).mkdir()

    assert offered("show c.zarr --model ", tmp_path, monkeypatch) == ["ok"]
    assert offered("show c.zarr --task ", tmp_path, monkeypatch) == ["ok"]
    assert offered("status ", tmp_path, monkeypatch) == ["c.zarr"]


def test_completion__help_of_a_name_is_plain(tmp_path):
    path = cube(tmp_path, "c.zarr", models=("ok",))
    document = json.loads((path / "zarr.json").read_text())
    document["attributes"]["spec"]["evaluations"][0]["sampler"]["name"] = "x\x1b[2J$(id)`'\"[red]"
    (path / "zarr.json").write_text(json.dumps(document))
    context = typer.Context(typer.main.get_command(app))
    context.params["cube"] = str(path)

    assert completion.models_of_cube(context, "") == [("ok", "ok / plain / x2Jidred")]


def test_completion__a_broken_plugin_leaves_the_bundled_tasks(monkeypatch):
    broken = EntryPoint("broken", "nowhere:task", "evalcube.tasks")
    monkeypatch.setattr("evalcube.stages.generate.installed", lambda: (broken,))

    assert "arithmetic" in dict(completion.tasks(""))


@pytest.mark.cluster
def test_completion__reads_names_without_the_cube_s_machinery(tmp_path):
    cube(tmp_path, "c.zarr")
    code = (
        "import sys, typer\n"
        "from evalcube.flows.cli import app, completion\n"
        "context = typer.Context(typer.main.get_command(app.app))\n"
        "context.params['cube'] = 'c.zarr'\n"
        "print([value for value, _ in completion.models_of_cube(context, '')])\n"
        "print([name for name in ('numpy', 'xarray', 'zarr', 'dask', 'pydantic') if name in sys.modules])\n"
    )

    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert result.stdout == "['alpha', 'beta']\n[]\n"


# Real shells


class Terminal:
    """A shell at a terminal."""

    def __init__(self, descriptor):
        self._descriptor = descriptor
        self.text = ""

    def type(self, keys, awaited):
        """Type keys, and wait until what is awaited, a regular expression, is on the screen after them."""
        begin, until = len(self.text), time.monotonic() + PATIENCE
        os.write(self._descriptor, keys.encode())
        while not re.search(awaited, self.text[begin:], re.DOTALL):
            ready, _, _ = select.select([self._descriptor], [], [], max(until - time.monotonic(), 0))
            assert ready, f"no {awaited!r} after {keys!r}: {self.text[begin:]!r}"
            self.text += os.read(self._descriptor, 65536).decode(errors="replace")
        return self.text[begin:]


@contextmanager
def terminal(*shell, cwd, env):
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        shell, cwd=cwd, env=env, stdin=follower, stdout=follower, stderr=follower, start_new_session=True
    )
    os.close(follower)
    try:
        yield Terminal(leader)
    finally:
        process.kill()
        process.wait()
        os.close(leader)


@pytest.fixture
def place(tmp_path):
    """A folder with cubes, a home folder and an `evalcube` on the path: (folder, environment)."""
    home, folder, programs = tmp_path / "home", tmp_path / "work", tmp_path / "bin"
    for path in (home, folder, programs):
        path.mkdir()
    script = programs / "evalcube"
    script.write_text(f"#!{sys.executable}\nfrom evalcube.__main__ import main\nmain()\n")
    script.chmod(0o755)
    cube(folder, "results/one.zarr", models=("alpha", "$(touch broken)", "x\\$(touch broken)"))
    env = {
        "HOME": str(home),
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "TERM": "dumb",
        "LANG": "C.UTF-8",
    }
    return folder, env


def needs(shell):
    found = shutil.which(shell)
    need(shell, found, f"apt-get install {shell}")
    return found


@pytest.mark.cluster
@pytest.mark.parametrize("arguments", [("bash", "--noprofile"), ("zsh",)], ids=lambda arguments: arguments[0])
def test_shells__complete_once_installed(arguments, place):
    folder, env = place
    shell = (needs(arguments[0]), *arguments[1:], "-i")
    for name in (".bashrc", ".zshrc"):
        (Path(env["HOME"]) / name).write_text("PS1='READY> '\n")

    with terminal(*shell, cwd=folder, env=env) as first:
        first.type("", "READY> ")
        first.type("evalcube --install-completion\n", "completion installed")
    with terminal(*shell, cwd=folder, env=env) as second:
        second.type("", "READY> ")
        if arguments[0] == "zsh":
            second.type(
                "evalcube \t\x15", "\x07"
            )  # it loads what was installed at the first Tab, and only rings
        second.type("evalcube sta\t", "sta.*tus ")
        second.type("res\t", r"one\.zarr")
        second.type("\x15evalcube show results/one.zarr --model \t", "--model .*alpha")
        second.type("\x15evalcube show results/one.zarr --task so\t", "--task so.*rt")
        second.type("\x15evalcube tasks arith\t", "arith.*metic")

    assert sorted(path.name for path in folder.iterdir()) == ["results"]


@pytest.mark.cluster
def test_fish__completes_once_installed(place):
    folder, env = place
    fish = needs("fish")

    def run(code):
        result = subprocess.run(
            [fish, "-c", code],
            cwd=folder,
            env=env,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        )
        return result.stdout

    assert "completion installed" in run("evalcube --install-completion")
    assert run("complete -C 'evalcube sta'").startswith("status\t")
    assert run("complete -C 'evalcube status res'") == "results/one.zarr\n"
    assert run("complete -C 'evalcube show results/one.zarr --model '").startswith("alpha\t")
    assert run("complete -C 'evalcube show results/one.zarr --task '") == "sort\tsort\n"
    assert run("complete -C 'evalcube tasks arith'").startswith("arithmetic\t")
    assert sorted(path.name for path in folder.iterdir()) == ["results"]
