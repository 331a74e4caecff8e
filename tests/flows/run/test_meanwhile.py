"""What another run does to a cube while a reader has it open, or a run waits for it."""

import evalcube as ec
from evalcube.flows.run import sweep
from evalcube.flows.run.sweep import run
from tests.flows.shared_cluster import SHARED
from tests.flows.support import loaded, sweep_config


def test_open_cube__of_a_cube_that_grows_meanwhile_is_read_on(tmp_path, simulator):
    run(sweep_config(tmp_path, simulator.base_url, trials=2), cluster=SHARED)
    opened = ec.open_cube(tmp_path / "cube.zarr")
    statuses = opened["status"].values

    run(sweep_config(tmp_path, simulator.base_url, trials=2, cells=6), cluster=SHARED)

    # All fill, so that the ledger is asked whether a chunk is gone: it speaks of the growth by now.
    assert (opened["reasoning_tokens"].values == -1).all()
    assert (opened["status"].values == statuses).all()


def test_run__that_made_the_cube_takes_over_what_another_run_did_before_it_got_the_lease(
    tmp_path, simulator, monkeypatch
):
    def config(cells, price):
        made = sweep_config(tmp_path, simulator.base_url, trials=2, cells=cells)
        made["models"][0]["prices"] = {"prompt": price, "completion": price}
        return made

    def after_another(*given):
        monkeypatch.setattr(sweep, "_lease", lease)
        run(config(6, 7.0), cluster=SHARED)
        return lease(*given)

    lease = sweep._lease
    monkeypatch.setattr(sweep, "_lease", after_another)

    assert run(config(4, 1.0), cluster=SHARED).reason == "complete"
    assert loaded(tmp_path / "cube.zarr")["price_prompt"].values.tolist() == [1.0]
