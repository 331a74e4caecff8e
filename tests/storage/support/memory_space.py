"""A cube's space in memory, made as one in a bucket would be: of objects that are put on conditions.

It has no locks across processes, no links, no renames and no appends.
"""

import itertools
import threading
import weakref
from collections.abc import MutableMapping

from zarr.core.buffer import default_buffer_prototype
from zarr.storage import MemoryStore

from evalcube.storage.cube.schema import SAID
from evalcube.storage.cube.space import Found, LeaseState, LogConflictError, Version, When
from evalcube.storage.errors import CubeExistsError

BUCKETS = weakref.WeakValueDictionary()
"""By a number that a space takes along where it is pickled."""


class Bucket:
    """Objects with versions, as the server of a bucket keeps them: each request is answered at once and whole."""

    def __init__(self):
        self._objects = {}
        self._versions = itertools.count()
        self._mutex = threading.Lock()
        BUCKETS[id(self)] = self

    def get(self, key):
        return self._objects.get(key)

    def put(self, key, data, when):
        with self._mutex:
            present = self._objects.get(key)
            if when is not When.ALWAYS:
                wanted = None if when is When.ABSENT else when
                if (present.version if present else None) != wanted:
                    return None
            version = Version(str(next(self._versions)))
            self._objects[key] = Found(bytes(data), version, len(data))
            return version

    def delete(self, key, version=None):
        with self._mutex:
            if version is None or self._objects[key].version == version:
                self._objects.pop(key, None)

    def list(self):
        return sorted(self._objects)


class Buffers(MutableMapping):
    """A bucket as zarr's store in memory wants it."""

    def __init__(self, bucket, prefix):
        self._bucket, self._prefix = bucket, prefix

    def __getitem__(self, key):
        found = self._bucket.get(self._prefix + key)
        if found is None:
            raise KeyError(key)
        return default_buffer_prototype().buffer.from_bytes(found.data)

    def __setitem__(self, key, value):
        self._bucket.put(self._prefix + key, value.to_bytes(), When.ALWAYS)

    def __delitem__(self, key):
        self._bucket.delete(self._prefix + key)

    def __iter__(self):
        return (key.removeprefix(self._prefix) for key in self._bucket.list() if key.startswith(self._prefix))

    def __len__(self):
        return sum(1 for _ in self)


class MemorySpace:
    """A `evalcube.storage.cube.space.Space`."""

    is_object_store = True

    def __init__(self, address, bucket=None, prefix=""):
        self.address = address
        self._bucket = bucket or Bucket()
        self._prefix = prefix

    def __reduce__(self):
        return _reached, (self.address, id(self._bucket), self._prefix)

    def at(self, name):
        return MemorySpace(f"{self.address}/{name}", self._bucket, f"{self._prefix}{name}/")

    def is_there(self):
        return any(True for _ in self.list())

    def is_writable(self):
        return True

    def get(self, key, most=None):
        found = self._bucket.get(self._prefix + key)
        return found and Found(found.data[:most], found.version, found.size)

    def version(self, key):
        found = self.get(key)
        return found and found.version

    def put(self, key, data, *, when=When.ALWAYS, durable=True):  # noqa: ARG002 - a bucket is always durable
        return self._bucket.put(self._prefix + key, data, when)

    def delete(self, key, *, durable=True):  # noqa: ARG002
        self._bucket.delete(self._prefix + key)

    def list(self, prefix=""):
        whole = self._prefix + prefix
        return (key.removeprefix(self._prefix) for key in self._bucket.list() if key.startswith(whole))

    def clear(self, prefix):
        for key in self.list(prefix):
            self.delete(key)

    def sync(self, keys):
        for key in keys:
            if key.split("/")[0] not in SAID and not key.endswith("/") and self.get(key) is None:
                raise FileNotFoundError(key)

    def fence(self, store, keys):
        pass

    def zarr(self, *, read_only=False):
        return MemoryStore(Buffers(self._bucket, self._prefix), read_only=read_only)

    def assemble(self, fill):
        built = MemorySpace(self.address)
        fill(built)
        # The metadata last: until then there is no cube. Only where nothing is, so that of two creators one wins.
        keys = sorted(built.list(), key=lambda key: (key == "zarr.json", key))
        if self.is_there() or not all(self.put(key, built.get(key).data, when=When.ABSENT) for key in keys):
            raise CubeExistsError("something is already there", self.address, "Choose another address.")

    def remove(self):
        for key in list(self.list()):
            self.delete(key)
        return True

    def sweep(self, prefixes, older_than, *, delete):  # noqa: ARG002 - nothing is ever on its way
        return 0

    def log(self, key):
        return MemoryLog(self, key)

    def lease(self, key):
        return MemoryLease(self, key)


def _reached(address, number, prefix):
    return MemorySpace(address, BUCKETS[number], prefix)


class MemoryLog:
    """Numbered objects, each of which must be absent."""

    def __init__(self, space, key):
        self._space, self._key = space, key
        self._next = None

    def lines(self):
        for number in itertools.count():
            found = self._space.get(f"{self._key}/{number:08}")
            if found is None:
                return
            yield found.data

    def append(self, line):
        if self._next is None:
            self._next = sum(1 for _ in self.lines())
        if self._space.put(f"{self._key}/{self._next:08}", line, when=When.ABSENT) is None:
            raise LogConflictError
        self._next += 1

    def flush(self, older_than=0.0):
        pass

    def claim(self):
        self._next = None
        self.append(b"")
        self._next = None

    def close(self):
        self._next = None


class MemoryLease:
    """An object that is put under the version that was seen, with the time of the renewal inside."""

    def __init__(self, space, key):
        self._space, self._key = space, key

    def read(self):
        return decoded(self._space.get(self._key))

    def take(self, successor):
        while True:
            found = self._space.get(self._key)
            record = successor(decoded(found))
            when = When.ABSENT if found is None else found.version
            version = self._space.put(self._key, encoded(record), when=when)
            if version is not None:
                return HeldObject(self._space, self._key, record.data, version)


class HeldObject:
    """The object of a lease that is held, by its version."""

    def __init__(self, space, key, data, version):
        self._space, self._key, self._data, self._version = space, key, data, version

    def is_mine(self):
        return self._space.version(self._key) == self._version

    def renew(self, now, *, late=False):  # noqa: ARG002 - a put on a condition is safe at any time
        renewed = self._space.put(self._key, encoded(LeaseState(self._data, now)), when=self._version)
        self._version = renewed or self._version
        return renewed is not None

    def withdraw(self):
        if self.is_mine():
            self._space._bucket.delete(self._space._prefix + self._key, self._version)

    def close(self):
        pass


def encoded(record):
    return f"{record.at!r}\n".encode() + record.data


def decoded(found):
    if found is None:
        return None
    at, _, data = found.data.partition(b"\n")
    return LeaseState(data, float(at))
