"""moto's S3 server, one write at a time: two that expect the same object may otherwise both be taken.

A real S3 looks and writes as one step; moto looks first, in threads.
"""

import functools
import threading

from moto.s3.responses import S3Response
from moto.server import main

_WRITES = threading.Lock()


def _alone(write):
    @functools.wraps(write)
    def one_at_a_time(*args, **kwargs):
        with _WRITES:
            return write(*args, **kwargs)

    return one_at_a_time


if __name__ == "__main__":
    for name in ("put_object", "delete_object"):
        setattr(S3Response, name, _alone(getattr(S3Response, name)))
    main()
