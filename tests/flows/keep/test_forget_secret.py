"""No byte of a secret stays behind where its replies are deleted."""

import json
import shutil
from contextlib import suppress
from unittest.mock import patch

import pytest
import zstandard

from evalcube.flows.keep import forget as forget_module
from evalcube.flows.keep.choice import Choice
from evalcube.flows.keep.forget import forget
from evalcube.flows.state.verify import verify_cube
from evalcube.stages.reply.forms import Record
from evalcube.storage.cache.cache import open_cache
from evalcube.storage.cache.directory import DirectoryCache
from tests.flows.keep.forgetting import (
    BETA,
    TRIALS,
    KilledError,
    killed_at,
)

SECRET = b"Project-Nightingale-7731"


@pytest.mark.parametrize("killed", [0, 1, 2])
def test_forget__no_byte_of_a_secret_stays_in_cube_and_cache(judged, tmp_path, killed):
    shutil.copytree(judged, tmp_path, dirs_exist_ok=True)
    cube, cache = tmp_path / "cube.zarr", tmp_path / "cache"
    choice = Choice(("row_id=peru",))
    keys = []
    with patch.object(forget_module, "islice", lambda found, _: keys.extend(found) or []):
        forget(cube, choice, cache=cache)
    assert (
        len(keys) == len(set(keys)) == 2 + 2 * (2 + 1)
    )  # two answers; three readings of each, by two judges
    shutil.rmtree(cube)
    shutil.copytree(judged / "cube.zarr", cube)
    quoting(cache, keys)
    assert SECRET in everything_in(cache)

    if killed:  # before the replies of judges go, or those that they are about
        with killed_at(DirectoryCache, "remove", killed), pytest.raises(KilledError):
            forget(cube, choice, cache=cache)

    done = forget(cube, choice, cache=cache)

    assert done.replies == (len(keys) if killed < 2 else 2)
    assert SECRET not in everything_in(cache)
    assert SECRET not in everything_in(cube)
    assert verify_cube(cube).whole
    assert len(list(open_cache(cache).entries())) == sum(
        1 for _ in open_cache(judged / "cache").entries()
    ) - len(keys)


def quoting(folder, keys):
    """Have the replies under some keys quote the secret, one of them in a damaged copy that was set aside, too."""
    with_secret = []
    cache = open_cache(folder)
    for key in keys:
        record = Record.decode(cache.get(key))
        body = {**json.loads(record.body), "note": SECRET.decode()}
        with_secret.append((key, record._replace(body=json.dumps(body).encode()).encode()))
    cache.remove(keys)
    assert all(cache.put_many(with_secret))
    cache.close()
    (folder / "damaged" / f"{keys[0]}.abcdef01.10").write_bytes(SECRET)


def everything_in(folder):
    """All bytes of a folder, and what is behind each of its zstd frames."""
    found = bytearray()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            found += content
            begin = content.find(zstandard.FRAME_HEADER)
            while begin >= 0:
                with suppress(zstandard.ZstdError):
                    found += zstandard.ZstdDecompressor().decompressobj().decompress(content[begin:])
                begin = content.find(zstandard.FRAME_HEADER, begin + 1)
    return bytes(found)


def test_forget__a_reply_in_another_process_pack_is_counted(sweep):
    with patch.object(DirectoryCache, "remove", lambda _, keys: len(keys)):
        done = forget(sweep["cube"], BETA, cache=sweep["cache"])

    assert done.kept_replies == TRIALS
