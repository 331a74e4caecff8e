"""Two users of one group share a folder: what one makes the other reads, extends and takes over."""

import os
import signal
import stat
import tempfile
import traceback
from pathlib import Path

import pytest

from evalcube.storage.cache.compaction import recover_all
from evalcube.storage.cache.directory import DirectoryCache
from evalcube.storage.cache.folders import Folders
from evalcube.storage.cube import holder as holder_module
from evalcube.storage.cube.batch_notes import BatchNotes
from evalcube.storage.cube.cube import Cube
from evalcube.storage.cube.directory import Directory
from evalcube.storage.cube.holder import read_holder
from evalcube.storage.cube.lease import Lease
from evalcube.storage.cube.ledger import Ledger
from evalcube.storage.errors import LeaseHeldError, NotWritableError, StorageError
from evalcube.storage.files import share
from evalcube.storage.processes import Life
from tests.storage.support import storage_workers

ANNE, BERT, GROUP = 54321, 54322, 54320
GROUP_MASK, USUAL_MASK, OWN_MASK = 0o002, 0o022, 0o077

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may work as two users"),
]


def work_as(user, mask, function):
    """Call a function in a process of a user whose own group is another one, and return whether it raised nothing."""
    child = os.fork()
    if child == 0:
        try:
            os.umask(mask)
            os.setgroups([GROUP])
            os.setgid(user)
            os.setuid(user)
            function()
        except BaseException:  # noqa: BLE001 - whatever it is, this is no test process
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.fixture(scope="module")
def _imported(tmp_path_factory):
    """All modules that are needed: a user may not read those of another one, who installed them."""
    folder = tmp_path_factory.mktemp("imported")
    begin(folder, die=False).release()
    go_on(folder, elsewhere=False)
    "".encode("ascii").decode("ascii")


@pytest.fixture
def shared(_imported):
    """A folder of the group, in which new files are the group's; its parents let everybody through."""
    with tempfile.TemporaryDirectory() as place:  # pytest's own folders are root's alone
        Path(place).chmod(0o755)
        if not all(parent.stat().st_mode & 0o001 for parent in Path(place).parents):
            pytest.skip("other users may not pass to the folder of temporary files")
        folder = Path(place) / "shared"
        folder.mkdir()
        os.chown(folder, 0, GROUP)
        folder.chmod(0o2775)
        yield folder


def made(folder):
    return [path for path in folder.rglob("*") if not path.is_symlink()]


def begin(folder, *, die):
    """A cube and a cache with something in them, and all kinds of files beside it."""
    cube = storage_workers.make_cube(folder / "c.zarr")
    ledger = Ledger(cube.records)
    first = next(iter(cube.regions()))
    cube.write_region(first, storage_workers.region_arrays(cube, first, 0))
    ledger.append(storage_workers.make_receipt(0, first))
    BatchNotes(cube.records).write("aaaaaaaa", b"{}")
    cube.records.put("live.json", b"{}", durable=False)
    cache = DirectoryCache(folder / "cache")
    cache.put_many([storage_workers.entry("anne", i) for i in range(5)])
    lease = Lease.acquire(cube.records, ttl=0.3)
    if die:
        os._exit(0)  # as a kill would: no index, no release
    return lease


def go_on(folder, *, elsewhere):
    """What a colleague does: take over, read, extend."""
    if elsewhere:
        holder_module.life_of = lambda _: Life.UNKNOWN
    cube = Cube.open(folder / "c.zarr", writable=True)
    with Lease.acquire(cube.records) as lease:
        cube.grow(trial=40)
        ledger = Ledger(cube.records)
        for region in cube.regions():
            cube.write_region(region, storage_workers.region_arrays(cube, region, 1))
            ledger.append(storage_workers.make_receipt(1, region))
        lease.check()
        notes = BatchNotes(cube.records)
        notes.write("aaaaaaaa", b"{}")
        notes.remove("aaaaaaaa")
        cube.records.put("live.json", b"{}", durable=False)
        cube.sweep()
    assert read_holder(cube.records) is None
    cache = DirectoryCache(folder / "cache")
    keys, values = zip(*(storage_workers.entry("anne", i) for i in range(5)), strict=True)
    assert cache.get_many(keys) == list(values)
    cache.put_many([storage_workers.entry("bert", i) for i in range(5)])
    cache.remove([storage_workers.entry("bert", 0)[0]])
    cache.sweep(delete=True)
    cache.close()


@pytest.mark.parametrize(
    ("mask", "elsewhere"),
    [(GROUP_MASK, False), (USUAL_MASK, True), (OWN_MASK, False)],
    ids=["group", "usual, another machine", "own"],
)
def test_shared_folder__a_colleague_goes_on_with_what_a_killed_run_left(shared, mask, elsewhere):
    work_as(ANNE, mask, lambda: begin(shared, die=True))

    work_as(BERT, USUAL_MASK, lambda: go_on(shared, elsewhere=elsewhere))
    work_as(ANNE, mask, lambda: go_on(shared, elsewhere=False))

    for path in made(shared):
        status = path.stat()
        assert status.st_gid == GROUP, path
        wanted = 0o2770 if path.is_dir() else 0o660
        assert stat.S_IMODE(status.st_mode) & ~0o007 == wanted, path
        assert status.st_uid != ANNE or not status.st_mode & mask & 0o007, path
    assert {path.stat().st_uid for path in made(shared)} == {ANNE, BERT}


@pytest.mark.parametrize("mode", [0o2755, 0o777], ids=oct)
def test_folder_that_is_not_shared__nothing_is_opened_wider_than_the_umask_says(shared, mode):
    os.chown(shared, ANNE, GROUP)
    shared.chmod(mode)
    work_as(ANNE, OWN_MASK, lambda: begin(shared, die=True))

    for path in made(shared):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path

    def be_refused():
        for refused in (
            lambda: Cube.open(shared / "c.zarr"),
            lambda: DirectoryCache(shared / "cache"),
            lambda: Lease.acquire(Directory(shared / "c.zarr" / "_evalcube")),
        ):
            with pytest.raises(StorageError, match=r"permission denied|read-only"):
                refused()

    work_as(BERT, GROUP_MASK, be_refused)


def test_shared_folder__a_colleague_who_may_only_read_reads(shared):
    os.chown(shared, ANNE, GROUP)
    shared.chmod(0o2755)
    work_as(ANNE, USUAL_MASK, lambda: begin(shared, die=True))

    def read():
        cube = Cube.open(shared / "c.zarr")
        assert len(Ledger(cube.records).newest()) == 1
        keys, values = zip(*(storage_workers.entry("anne", i) for i in range(5)), strict=True)
        assert DirectoryCache(shared / "cache", writable=False).get_many(keys) == list(values)
        with pytest.raises(NotWritableError):
            Cube.open(shared / "c.zarr", writable=True)
        with pytest.raises(NotWritableError):
            DirectoryCache(shared / "cache")

    work_as(BERT, GROUP_MASK, read)


def test_shared_folder__a_live_run_of_a_colleague_is_known_to_live(shared):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgroups([GROUP])
        os.setgid(ANNE)
        os.setuid(ANNE)
        os.umask(GROUP_MASK)
        lease = begin(shared, die=False)
        os.write(writer, b"x")
        signal.pause()
        lease.release()
    os.read(reader, 1)

    def be_refused():
        with pytest.raises(LeaseHeldError, match=f"process {child} "):
            Lease.acquire(Directory(shared / "c.zarr" / "_evalcube"))
        recover_all(Folders(shared / "cache"))

    try:
        work_as(BERT, GROUP_MASK, be_refused)
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
        os.close(reader)
        os.close(writer)


def test_share__leaves_alone_what_a_link_leads_to_and_what_is_of_another_group(shared):
    other = shared.parent / "secret"
    other.write_bytes(b"")
    other.chmod(0o600)
    (shared / "link").symlink_to(other)
    (shared / "hard").hardlink_to(other)

    share(shared / "link")
    share(shared / "hard")

    assert stat.S_IMODE(other.stat().st_mode) == 0o600
