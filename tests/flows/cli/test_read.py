"""What `show`, `leaderboard`, `report`, `bundle` and `explore` print and hand on."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from evalcube.flows.cli import read
from evalcube.flows.explore.bundle import Bundle
from evalcube.flows.plan.evaluations import Opinion
from evalcube.flows.read.reader import SecondView, TrialView
from tests.cases import with_cases
from tests.flows.cli.made_up import document, run
from tests.flows.support import evalcube, refused

NAN = float("nan")
MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2+2?"}]
VIEW = TrialView(
    "m", "sums", {"length": 3, "depth": 1}, 4, 2, "correct", MESSAGES, "It is 4", "", "4", "4", 7, 0.25, NAN, "d" * 64,
    {}, [], None, "", None, None, None, None, False, None, "",
)  # fmt: skip


def shown(capsys, monkeypatch, **changes):
    monkeypatch.setenv("COLUMNS", "66")  # fewer than a key has
    read._print_trial(replace(VIEW, **changes), {"length"}, "(lost)")
    return capsys.readouterr().out


def test_show__of_a_plain_trial_has_no_line_that_says_nothing(capsys, monkeypatch):
    output = shown(capsys, monkeypatch)

    lines = output.splitlines()
    assert lines[0] == "m · sums · length=3 · trial 4 · repeat 2"
    assert [line for line in lines if not line.startswith(("│", "╭", "╰"))][1:] == [
        "parsed 4   reference 4   status correct", "tokens 7   latency 0.250 s", f"cache key {'d' * 64}"
    ]  # fmt: skip
    for words in ("system", "Be brief.", "user", "2+2?", "response", "It is 4"):
        assert words in output
    assert "reasoning" not in output


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"row": 9}, "repeat 2 · row 9\n"),
        ({"row": 9, "row_id": "france"}, "repeat 2 · row 9 (france)\n"),
        ({"reasoning": "two and two"}, "two and two"),
        ({"response": None}, "(lost)"),
        ({"parsed": None}, "parsed none   reference"),
        ({"fault": "off by one"}, "status correct (off by one)"),
        ({"theirs": SecondView("strict", "incorrect", "5")}, "strict: parsed 5   status incorrect"),
        ({"theirs": SecondView("strict", "incorrect", None)}, "strict: status incorrect"),
        ({"layers": {"fact": 4.25}}, "fact     4.25"),
        ({"judged": [{"judge": "a, b", "role": "user", "content": "rate it"}]}, "to judge a, b: user"),
        ({"opinions": [Opinion("a", 1, 4.0, "fine")]}, "judge a, repeat 1: 4  fine"),
        ({"opinions": [Opinion("a", 1, NAN, "odd")]}, "judge a, repeat 1: no score  odd"),
        ({"first_token": 0.125}, "latency 0.250 s   first token 0.125 s"),
        ({"tokens": -1, "latency": NAN}, "tokens not known   latency not known"),
        ({"tokens": 0}, "tokens 0   latency"),
        ({"prompt_tokens": 0, "cached_tokens": 3}, "tokens 7   prompt 0   cached 3   latency"),
        ({"reasoning_tokens": 5}, "tokens 7   reasoning 5   latency"),
        ({"read_as": "last line"}, "read: last line"),
        ({"looping": True}, "its end repeats itself"),
        ({"ending": "odd_stop"}, "odd_stop"),
        ({"provider": "vllm"}, "answered by vllm"),
    ],
)
def test_show__says_what_there_is(capsys, monkeypatch, changes, words):
    assert words in shown(capsys, monkeypatch, **changes)
    assert words not in shown(capsys, monkeypatch)


def test_show__of_what_a_model_wrote_reaches_no_terminal(capsys, monkeypatch):
    hostile = "a\x1b[31mb"
    output = shown(
        capsys,
        monkeypatch,
        response=hostile,
        reasoning=hostile,
        parsed=hostile,
        fault=hostile,
        provider=hostile,
    )

    assert "\x1b" not in output
    assert output.count("[31mb") == 5


@with_cases(
    ("view", "reader", "said"),
    [
        (
            {"digest": "", "messages": [{"role": "note", "content": "no task"}]},
            {},
            "is not looked up: no task",
        ),
        ({}, {"cache": lambda: "open"}, "the cache does not hold this reply"),
        ({}, {"notes": {"cache": "there"}}, "(give --cache; the cube names there)"),
        ({}, {"notes": {"cache": 5}}, "(give --cache)"),
        ({}, {"away": ["it is away"], "notes": {"cache": "there"}}, "(it is away)"),
    ],
)
def test_why_missing__says_where_the_reply_may_be(view, reader, said):
    known = {"cache": lambda: None, "notes": {}, "away": [], "without_cache": "give `cache`"}

    assert said in read._why_missing(SimpleNamespace(**{**known, **reader}), replace(VIEW, **view))


@with_cases(("parsed", "said"), [(None, "evalcube: its check was not run\n"), ("4", "")])
def test_show__says_why_there_is_no_answer(parsed, said, monkeypatch, tmp_path):
    reader = SimpleNamespace(
        point=lambda *_: (0, 0),
        plan=SimpleNamespace(
            evaluation_index=int, tasks=[SimpleNamespace(not_run=["its check was not run"])]
        ),
        view=lambda *_: replace(VIEW, parsed=parsed),
    )
    monkeypatch.setattr("evalcube.flows.read.reader.Reader", lambda *_: reader)

    code, _, errors = evalcube("show", "c.zarr", "--task", "sums", "--json", cwd=tmp_path)

    assert (code, errors) == (0, said)


def test_show__takes_a_trial_by_its_place(cube):
    found = document(
        "show", cube, "--task", "sort", "--params", "length=5", "--model", "weak", "--trial", 3, "--repeat", 1
    )

    assert (found["model"], found["task"], found["params"]["length"]) == ("weak", "sort", 5)
    assert (found["trial"], found["repeat"]) == (3, 1)
    first = document("show", cube, "--task", "sort", "--params", "0")
    assert (first["model"], first["trial"], first["repeat"]) == ("strong", 0, 0)
    text = run("show", cube, "--task", "sort", "--params", "0")
    assert "sort · length=3 · trial 0 · repeat 0" in text
    assert f"key {first['digest']}" in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], ["the task is not named"]),
        (["--task", "sort", "--trial", "1", "--row", "x"], ["--trial", "--row"]),
        (["--task", "sort", "--params", "0", "--trial", "12"], ["0 to 11"]),
    ],
)
def test_show__refuses_what_names_no_trial(cube, tmp_path, options, words):
    refused(evalcube("show", cube, *options, cwd=tmp_path), *words)


def test_leaderboard__draws_what_it_shows(cube, tmp_path):
    picture = tmp_path / "board.svg"
    board = document("leaderboard", cube, "--plot", picture, "--sort", "cost_per_1000")

    assert picture.read_text().lstrip().startswith(("<svg", "<?xml"))
    assert len(board["rows"]) == 3
    assert document("leaderboard", cube, "--where", "model=weak")["rows"][0]["model_name"] == "weak"
    refused(evalcube("leaderboard", cube, "--plot", tmp_path / "board.png", cwd=tmp_path), "svg")


def test_report__says_where_it_is(cube, tmp_path):
    assert run("report", cube, "--output", tmp_path / "r.html", "--samples", 0) == f"{tmp_path / 'r.html'}\n"
    assert (tmp_path / "r.html").stat().st_size > 10_000


def test_bundle__hands_its_options_on_and_says_what_it_wrote(cube, tmp_path, monkeypatch):
    seen = {}

    def write(cubes, output, **options):
        seen.update(options, cubes=cubes, output=output)
        return made

    made = Bundle("out", 5, 2_000_000, 1234, ("a note",))
    monkeypatch.setattr("evalcube.flows.explore.bundle.bundle", write)
    code, output, errors = evalcube("bundle", cube, "--output", tmp_path / "out", "--most", 9, cwd=tmp_path)
    listed = evalcube(
        "bundle", cube, "--output", tmp_path / "out", "--trials", "none", "--json", cwd=tmp_path
    )

    assert (code, listed[0]) == (0, 0)
    assert "out/index.html: 1,234 trials, 5 files, 2.0 MB" in output
    assert "a note" in errors
    assert json.loads(listed[1])["trials"] == 1234
    assert (seen["trials"], seen["most"]) == ("none", 20_000)


@pytest.mark.parametrize("browser", [False, True])
def test_explore__says_where_it_is_and_opens_it_if_asked(cube, tmp_path, monkeypatch, browser):
    seen, opened = {}, []

    def serve(_, *, ready, **options):
        seen.update(options)
        ready("http://here/")

    monkeypatch.setattr("evalcube.flows.explore.server.serve", serve)
    monkeypatch.setattr("webbrowser.open", opened.append)
    code, output, _ = evalcube("explore", cube, "--port", "5", *["--browser"] * browser, cwd=tmp_path)

    assert (code, output) == (0, "http://here/\n")
    assert opened == ["http://here/"] * browser
    assert (seen["host"], seen["port"], seen["with_token"]) == ("127.0.0.1", 5, False)
