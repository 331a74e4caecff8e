"""Columns of the table of trials: their types, meanings and values."""

import evalcube as ec
from evalcube.flows.read.trials.columns import COLUMNS, arrow_schema
from evalcube.flows.read.trials.read import trials


def test_columns__have_the_types_of_the_one_list_and_its_meanings(swept, judged):
    schemas = [trials(folder / "cube.zarr", limit=3).to_arrow().schema for folder in (swept, judged)]

    for schema in schemas:
        fixed = [field for field in schema if not field.name.startswith("param_")]
        assert fixed == list(arrow_schema(COLUMNS))
        assert schema.field("tokens").metadata[b"comment"] == b"Completion tokens, reasoning included."
    assert str(schemas[0].field("param_length").type) == "int64"
    assert str(schemas[0].field("param_prob_not").type) == "double"


def test_arrow_and_pandas__hold_what_the_rows_hold(swept):
    table = trials(swept / "cube.zarr")

    arrow, frame = table.to_arrow(), table.to_dataframe()

    plain = [{**row, "latency": None, "guess_chance": None} for row in arrow.to_pylist()]
    assert plain == [{**row, "latency": None, "guess_chance": None} for row in table.rows()]
    assert len(frame) == arrow.num_rows == sum(batch.num_rows for batch in table)
    assert list(frame["status"]) == arrow["status"].to_pylist()


def test_several_cubes__make_one_table(swept, judged):
    both = list(
        trials([swept / "cube.zarr", judged / "cube.zarr"], columns=["cube", "task", "length"]).rows()
    )

    assert {row["cube"] for row in both} == {str(folder / "cube.zarr") for folder in (swept, judged)}
    assert {row["param_length"] is None for row in both if row["cube"].startswith(str(judged))} == {True}
    mixed = trials(
        [swept / "cube.zarr", judged / "cube.zarr"], sort="tokens", columns=["tokens", "prompt", "cube"]
    )
    tokens = [row["tokens"] for row in mixed.rows()]
    assert tokens == sorted(tokens)
    assert all(("capital" in row["prompt"]) == row["cube"].startswith(str(judged)) for row in mixed.rows())


def test_to_dataframe__has_the_same_rows_without_arrow(swept, monkeypatch):
    found = ec.trials(swept / "cube.zarr", columns=["model", "task", "trial", "status", "tokens"])
    with_arrow = found.to_dataframe()
    monkeypatch.setattr("evalcube.flows.read.trials.read.find_spec", lambda _: None)

    without = found.to_dataframe()

    assert without.columns.tolist() == with_arrow.columns.tolist()
    assert without.astype(str).equals(with_arrow.astype(str))
