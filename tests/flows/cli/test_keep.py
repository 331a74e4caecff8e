"""What commands that look after cubes, caches and data print."""

import json
from dataclasses import replace

import pytest
import typer
from typer.testing import CliRunner

from evalcube.flows.cli import keep, output
from evalcube.flows.cli.keep import data_commands
from evalcube.flows.events import Announcer
from evalcube.flows.keep.cache import CacheCheck, CollectedEntries
from evalcube.flows.keep.forget import Forgetting, ForgottenRow
from evalcube.flows.state.damage import Damage, Verification
from evalcube.flows.state.rescoring import Recount, Rescoring
from tests.hub import GSM, jsonl


@pytest.mark.parametrize(
    ("terminal", "shown"),
    [
        (True, "\r\x1b[Krows: 7\r\x1b[Kevalcube: hear\n\r\x1b[Krows: 8\r\x1b[K"),
        (False, "rows: 7\nevalcube: hear\nrows: 8\n"),
    ],
)
def test_progress__one_line_that_changes_on_a_terminal_and_lines_elsewhere(
    monkeypatch, capsys, terminal, shown
):
    monkeypatch.setattr(output, "_REDRAW_SECONDS", -1.0)
    monkeypatch.setattr(output, "_LINE_SECONDS", -1.0)
    monkeypatch.setattr("sys.stderr.isatty", lambda: terminal)

    with output.progress() as subscribers:
        announcer = Announcer(subscribers)
        announcer.count("rows", 7)
        announcer.note("hear")
        announcer.count("rows", 8)

    assert capsys.readouterr().err == shown


def test_data__lists_what_is_here_with_the_commit_that_was_meant(hub):
    def call_data(*arguments):
        return (
            CliRunner()
            .invoke(data_commands, arguments, catch_exceptions=False, env={"COLUMNS": "200"})
            .stdout
        )

    hub.add("acme/sums", {"test.jsonl": jsonl(GSM)})
    address = "hf://acme/sums?split=test"
    assert "nothing was fetched to" in call_data("list")
    fetched = json.loads(call_data("fetch", address, "--json"))["data"]
    told = call_data("fetch", address)

    (row,) = json.loads(call_data("list", "--json"))["data"]
    words = call_data("list").split()
    assert (row["asked"], len(row["commit"]), len(fetched)) == (address, 40, 1)
    assert words[words.index(address) + 1] == row["commit"][:12]
    assert f"{len(GSM)} rows" in told
    assert "licence mit" in told
    assert "to pin it" in told
    hub.add("acme/bare", {"test.jsonl": jsonl(GSM)}, card={})
    assert "licence not stated" in call_data("fetch", "hf://acme/bare?split=test")
    assert [text in call_data("list") for text in (" mit ", " not stated ")] == [True, True]


@pytest.fixture
def printed(monkeypatch, capsys):
    """What a command prints of a result, on both streams, and its exit code."""

    def print_of(command, made, result, **options):
        monkeypatch.setattr(made, result if callable(result) else lambda *_, **__: result)
        code = 0
        try:
            command(**options)
        except typer.Exit as end:
            code = end.exit_code
        words, complaint = capsys.readouterr()
        return code, " ".join(words.split()), " ".join(complaint.split())

    return print_of


def test_rescore__shows_counts_that_changed_and_what_is_left(printed):
    rows = [
        Recount(
            "m",
            "sort",
            {"correct": 3, "invalid": 2, "incorrect": 7},
            {"correct": 5, "incorrect": 7, "invalid": 0},
        )
    ]
    done = Rescoring("c", "9", ("8", "imported"), 4, 0, rows)

    def words(done):
        return printed(
            keep.rescore, "evalcube.flows.keep.rescore.rescore_cube", done, cube="c", output=None, cache=None
        )

    code, text, complaint = words(done)
    assert (code, complaint) == (0, "")
    assert "m sort 3 → 5 7 2 → 0" in text
    assert "grader 8 → 9" in text
    assert "4 regions graded again: 2 trials changed" in text
    assert words(replace(done, lost=3))[2].count("3 regions") == 1
    assert words(replace(done, imported=5))[2].count("5 imported regions") == 1


@pytest.mark.parametrize(
    ("report", "heal", "code", "complaint"),
    [
        (Verification("c", 3, 0), False, 0, ""),
        (Verification("c", 3, 2), False, 0, "2 lines of the ledger"),
        (Verification("c", 3, 0, [Damage("tokens", "is gone", healed=True)]), True, 0, ""),
        (Verification("c", 3, 0, [Damage("tokens", "is gone")]), False, 2, "the cube is damaged"),
        (Verification("c", 3, 0, [Damage("tokens", "is gone", requests=7)]), True, 2, "sends 7 requests"),
        (Verification("c", 3, 0, [Damage("tokens", "is gone")]), True, 2, "needs the sweep's config"),
    ],
)
def test_verify__of_a_cube_says_what_is_damaged_and_what_to_do(printed, report, heal, code, complaint):
    made = "evalcube.flows.state.verify.verify_cube"

    ended, text, said = printed(keep.verify, made, report, cube="c", heal=heal)

    assert ended == code
    assert complaint in said
    assert bool(said) == bool(complaint)
    assert f"3 regions checked: {len(report.damages) or 'none'} damaged" in text
    assert ["healed: `tokens`" in text, "damaged: `tokens`" in text] == [
        any(damage.healed for damage in report.damages),
        any(not damage.healed for damage in report.damages),
    ]
    assert ("lacks 7" in text) == any(damage.requests for damage in report.damages)
    many = replace(report, damages=[Damage("x", "is gone", healed=True)] * (keep.MOST_ROWS + 2))
    assert "... and 2 more" in printed(keep.verify, made, many, cube="c", heal=heal)[1]
    assert "more" not in text


@pytest.mark.parametrize("yes", [False, True])
@pytest.mark.parametrize("cache", ["", "replies"])
def test_forget__asks_before_it_takes_and_says_where_replies_stay(printed, yes, cache):
    shown = Forgetting(
        "c", cache, False, [ForgottenRow("m", "sort", 3, 4), ForgottenRow("m", "dates", 2, 2)], batches=6
    )

    def words(shown, **more):
        def forget(*_, confirmed, **__):
            assert confirmed(shown) == (yes and bool(shown.rows))
            return replace(shown, done=yes and bool(shown.rows), **more)

        made = "evalcube.flows.keep.forget.forget"
        return printed(keep.forget, made, forget, cube="c", where=["task=sort"], cache=bool(cache), yes=yes)

    code, text, complaint = words(shown, replies=9)
    assert code == 0
    assert "all 5 6 m sort 3 4 m dates 2 2" in text
    assert ("nothing is deleted yet" in complaint) == (not yes)
    assert ("5 results are forgotten" in text) == yes
    assert ("replies to 9 requests" in text) == (yes and bool(cache))
    assert ("6 batches under way" in text, "--cache deletes them" in text) == (bool(cache), not cache)
    assert words(shown, kept_replies=8)[0] == 1
    assert words(replace(shown, rows=[]))[1:] == ("no result fulfils this", "")


def test_cache_commands__say_what_is_left_to_do(printed):
    check = CacheCheck(9, 100, 3, 2, ["ab", "cd"])
    made = "evalcube.flows.keep.cache."
    code, text, complaint = printed(keep.verify_cache, f"{made}verify", check, cache="c", repair=True)
    assert (code, "... and 1 more" in text, "2 moved away" in complaint) == (1, True, True)
    code, text, complaint = printed(
        keep.verify_cache, f"{made}verify", replace(check, keys=["a"] * 3), cache="c"
    )
    assert ("more" in text, "--repair" in complaint) == (False, True)
    assert printed(keep.verify_cache, f"{made}verify", replace(check, damaged=0, keys=[]), cache="c")[0] == 0

    found = CollectedEntries(9, 5, 100, 4, 7, 2, 1, deleted=False)
    texts = [
        printed(keep.gc, f"{made}collect", result, cache="c")[1]
        for result in (
            found,
            replace(found, deleted=True, in_use=0),
            replace(found, unreferenced=0, temporaries=0, in_use=0),
        )
    ]
    assert "would delete 4 of 9 entries" in texts[0]
    assert "deleted 5 of 9 entries" in texts[1]
    assert ["1 more are in packs" in text for text in texts] == [True, False, False]
    assert ["--yes" in text for text in texts] == [True, False, False]
    assert all("7 requests are referenced; 2 of them are not" in text for text in texts)
