"""How replies ended, as the explorer counts them."""

import xarray as xr

from evalcube.flows.explore import endings
from evalcube.flows.explore.answers import ask
from evalcube.flows.explore.explored import Explored
from evalcube.flows.explore.query import Query
from evalcube.stages.reply.body import ending_code


def test_ends__counts_each_unknown_word_by_model_and_by_task(explored_cube, monkeypatch):
    chosen, word = endings.chosen, "tired"

    def with_endings(*arguments):
        dataset, labels = chosen(*arguments)
        wrong = dataset["status"] == 0
        return dataset.assign(ending=xr.where(wrong, ending_code(word), 0)), labels

    monkeypatch.setattr(endings, "chosen", with_endings)
    monkeypatch.setattr(endings, "unknown_ends", lambda _: {word: 1, "never": 1})

    explored = Explored([explored_cube])
    (row,) = [row for row in ask(explored, "ends", Query())["ends"] if row["where"].startswith("ending=")]

    status = explored.opened[0].dataset()["status"]
    assert row["title"].endswith(word)
    assert row["where"] == f"ending={ending_code(word)}"
    assert sum(row["model"].values()) == sum(row["task"].values()) == int((status == 0).sum()) > 0
