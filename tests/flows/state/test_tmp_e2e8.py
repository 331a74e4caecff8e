import shutil
import pytest, zstandard, json
import evalcube as ec
from evalcube.flows.keep.rescore import rescore_cube
from evalcube.flows.run.sweep import run
from evalcube.flows.share.merge import merge_cubes
from evalcube.flows.read.reader import Reader
from evalcube.flows.state.verify import verify_cube
from evalcube.flows.share.publish.publish import publish_cube
from evalcube.stages.generate import TaskError
from evalcube.stages.generate.foreign import rendered
from evalcube.stages.generate.foreign.rendered import _as_kept, BLOCK
from tests.flows.plan.test_absent_tasks import installed
from tests.flows.support import sweep_config
from tests.stages.generate.foreign import made_elsewhere
from tests.stages.generate.foreign.made_elsewhere import Sums
from pathlib import Path

def test_all(tmp_path, simulator, monkeypatch):
    installed(monkeypatch, ("made:sums", "tests.stages.generate.foreign.made_elsewhere:Sums"))
    config = sweep_config(tmp_path, simulator.base_url, cells=1)
    config["tasks"] = {"made:sums": {"params": {"level": 1}}}
    config["trials"] = 40
    # a hostile cube: the same sweep, its blocks replaced
    run({**config, "cube": str(tmp_path / "evil.zarr")})
    blocks = list((tmp_path / "evil.zarr").rglob("questions/*.zst"))
    assert len(blocks) == 2
    evil = zstandard.compress(_as_kept([{"prompt": "EVIL", "target": "0", "entry": []}] * BLOCK))
    for b in blocks: b.write_bytes(evil)
    rendered._HELD = rendered._Held()
    theirs = Reader(tmp_path / "evil.zarr")
    assert theirs.plan.tasks[0].cells[0].cell.trial(0).prompt == "EVIL"
    done = run(config)
    mine = Reader(config["cube"])
    p = [mine.plan.tasks[0].cells[0].cell.trial(i).prompt for i in range(40)]
    assert "EVIL" not in p
    Reader(tmp_path / "evil.zarr").plan.tasks[0].cells[0].cell.trial(0)
    done = run({**config, "trials": 70})
    assert all(b.read_bytes() != evil for b in Path(config["cube"]).rglob("questions/*.zst"))
    assert theirs.plan.tasks[0].cells[0].cell.trial(33).prompt == "EVIL"
    monkeypatch.setattr(Sums, "missing", True)
    rendered._HELD = rendered._Held()
    mine = Reader(config["cube"])
    assert [mine.plan.tasks[0].cells[0].cell.trial(i).prompt for i in range(40)] == p
    assert verify_cube(config["cube"]).ok if hasattr(verify_cube(config["cube"]), "ok") else True
    print(rescore_cube(config["cube"], output=str(tmp_path / "re.zarr")))
    merged = merge_cubes([config["cube"], str(tmp_path / "re.zarr")], str(tmp_path / "m.zarr"))
    got = Reader(str(tmp_path / "m.zarr")).plan.tasks[0].cells[0].cell
    assert [got.trial(i).prompt for i in range(40)] == p
    assert len(list((tmp_path / "m.zarr").rglob("questions/*.zst"))) == 3
    print(publish_cube.__doc__[:300])
