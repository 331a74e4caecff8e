"""Logs are imported into a cube in a bucket as into one in a directory."""

import numpy as np
import pytest

from evalcube.flows.errors import SweepError
from evalcube.flows.share.imports.logs import import_logs
from evalcube.flows.state.verify import verify_cube
from tests.flows.share.imports.logs import INSPECT
from tests.flows.support import arrays
from tests.storage.support.cache_stores import s3_server

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def s3_env():
    with s3_server() as env:
        yield env


@pytest.fixture
def bucket(s3_env, monkeypatch):
    for name, value in s3_env.items():
        monkeypatch.setenv(name, value)
    return "s3://bucket/imported.zarr"


def test_import_logs__into_a_bucket(bucket, tmp_path):
    options = {"cache": tmp_path / "cache", "correct_from": 0.5}
    logs = sorted(INSPECT.glob("alfa-*"))
    with pytest.raises(SweepError, match="`data` is missing"):
        import_logs(logs, bucket, **options)

    import_logs(logs, bucket, data=tmp_path / "data", **options)
    import_logs(logs, tmp_path / "cube.zarr", **options)

    assert verify_cube(bucket).damages == []
    ours, theirs = arrays(bucket), arrays(tmp_path / "cube.zarr")
    for name in ours:
        np.testing.assert_array_equal(ours[name], theirs[name])
