"""The content of an entry: a value, compressed, with a checksum that is bound to its key.

A content has the magic, the checksum, and a Zstandard frame.
"""

from __future__ import annotations

import hashlib
import threading

import zstandard

MAX_VALUE = 64 * 2**20
"""Greatest value in bytes, as stored and as read: a frame that claims more is not decompressed."""

MOST_BYTES = MAX_VALUE + MAX_VALUE // 64
"""Greatest content in bytes: zstd grows incompressible data by less than 1 %. What is larger is no entry."""

MAGIC = b"EVC1"
"""What every content begins with."""

_CHECK = 16
_HEADER = len(MAGIC) + _CHECK
_LEVEL = 3


def encode(key: str, value: bytes, compressor: zstandard.ZstdCompressor) -> bytes:
    """Content of an entry: magic, checksum bound to `key`, compressed value."""
    payload = compressor.compress(value)
    return MAGIC + checksum(key, payload) + payload


def decode(key: str, data: bytes, decompressor: zstandard.ZstdDecompressor) -> bytes | None:
    """Value in an entry's content; None unless every byte is as `encode` made it for this key."""
    if not is_whole(key, data):
        return None
    payload = data[_HEADER:]
    # The checksum is no secret: one from elsewhere may pass it and still be a bomb.
    try:
        if not 0 <= zstandard.frame_content_size(payload) <= MAX_VALUE:
            return None
        return bytes(decompressor.decompress(payload, allow_extra_data=False))
    except zstandard.ZstdError:
        return None


def is_whole(key: str, data: bytes) -> bool:
    """Whether an entry's content passes its checksum."""
    return data[:_HEADER] == MAGIC + checksum(key, memoryview(data)[_HEADER:])


def checksum(key: str, payload: bytes | memoryview) -> bytes:
    """What an entry's header says of its payload."""
    return hashlib.blake2b(payload, digest_size=_CHECK, key=bytes.fromhex(key)).digest()


class Contexts(threading.local):
    """Zstandard contexts, which threads cannot share."""

    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=_LEVEL, write_content_size=True)
        self.decompressor = zstandard.ZstdDecompressor()
