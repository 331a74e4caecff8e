"""What a driver on a cluster keeps beside its cube."""

from types import SimpleNamespace

from evalcube.flows.events import Finished, Noted, Traffic
from evalcube.flows.run.jobs.dask_driver import DriverBook
from evalcube.flows.state.records import read_driver
from evalcube.storage.cube.cube import Cube
from tests.flows.read.merged.generated import Recipe, make_cube


def test_driver_book__has_the_state_and_the_lines_of_this_driver_and_those_before(tmp_path):
    url = make_cube(tmp_path / "c.zarr", Recipe()).url
    order = SimpleNamespace(name="d", scheduler="tcp://s", worker="tcp://w", config={"cube": url})
    book, states = DriverBook(order, ["from before"]), []

    for event in (Noted("begins"), Traffic(), Finished("complete", {})):
        book(event)
        record = read_driver(Cube.open(url).records)
        states.append(record["state"])

    assert states == ["", "asks", "asks"]
    assert [line.rpartition(": ")[2] for line in record["lines"]] == ["from before", "begins", "complete"]
    assert record["name"] == "d"


def test_driver_book__goes_on_where_the_cube_cannot_be_reached(tmp_path):
    order = SimpleNamespace(name="d", scheduler="s", worker="w", config={"cube": str(tmp_path / "gone.zarr")})

    DriverBook(order, [])(Noted("begins"))
