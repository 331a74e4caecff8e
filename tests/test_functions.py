"""What a command does, a function of its name does, with the words of its options; what differs is listed here."""

import inspect

import typer

import evalcube as ec
from evalcube.flows.cli.app import app
from tests.cases import with_cases

PRINTED = {"as_json", "markdown", "as_csv", "jsonl", "parquet", "quiet", "plot", "watch", "log"}
"""How a command shows what a function returns, and how it says how far it is."""
PART = {"where", "view", "trials", "unique_only", "clip_tokens", "reader"}
"""What a `Part` holds."""
CONFIG = {"models", "key_envs", "judges"}
"""What `run` and `plan` change of a config that they read; a mapping has it."""
TOLD = {"subscribers", "progress"}
"""Who is told how far a function is."""
COMMANDS = {"import_logs": "import", "verify": "cube verify"}
ONLY_COMMAND = {
    "plan": {"check", "cluster", "scheduler", "task", "detect", "power", "against"},  # `run` checks by itself
    "compare": {"cache", "flips", "limit"},  # `trials` has the answers
    "verdict": {"more"},
    "gate": {"config", "to_the_end"},  # asks, as a run does
    "tasks": {"name"},
    "trials": {"count"},  # `Counter` over `rows()`
}
ONLY_FUNCTION = {
    "run": {"_sampling", "flush_seconds", "stop"},  # whoever types a command has Ctrl-C
    "upsample": {"stop"},
    "leaderboard": {"confidence", "draws", "seed"},
    "table": {"confidence"},
    "verdict": {"method"},
    "rank": {"draws", "seed"},
    "trials": {"offset"},
    "report": {"date"},
    "export": {"now"},
}
FUNCTIONS = (
    *(
        "plan",
        "run",
        "probe",
        "upsample",
        "status",
        "leaderboard",
        "table",
        "rank",
        "compare",
        "metrics",
        "verdict",
        "gate",
    ),
    *(
        "trials",
        "report",
        "merge",
        "diff",
        "publish",
        "pull",
        "import_logs",
        "export",
        "verify",
        "rescore",
        "tasks",
    ),
)


def options(name):
    """Names of a command's parameters."""
    found = typer.main.get_command(app)
    for word in COMMANDS.get(name, name).split():
        found = found.commands[word]
    return {parameter.name for parameter in found.params}


@with_cases("name", FUNCTIONS)
def test_function__has_the_words_of_its_command(name):
    takes = set(inspect.signature(getattr(ec, name)).parameters)
    offered = options(name) - PRINTED - (CONFIG - takes if "config" in takes else set())
    if "part" in takes:
        takes, offered = takes - {"part"}, offered - PART

    assert offered - takes == ONLY_COMMAND.get(name, set())
    assert takes - offered - TOLD == ONLY_FUNCTION.get(name, set())
