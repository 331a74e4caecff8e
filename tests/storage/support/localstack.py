"""LocalStack's S3 server, an implementation that shares no code with moto's, in an environment of its own."""

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

from tests.ports import free_port
from tests.storage.support.cache_stores import S3_ENV, asked, server
from tests.tiers import need

NAMED = "EVALCUBE_LOCALSTACK"
"""Variable with the Python that has LocalStack; without it, the one that `make localstack` has made."""
MADE = Path(__file__).parents[3] / ".localstack" / "bin" / "python"


@contextmanager
def localstack_server():
    """Yields the environment of a client; `bucket` exists. Skips where LocalStack is not installed."""
    python = Path(os.environ.get(NAMED) or MADE)
    need("localstack", python.is_file(), "make localstack")
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "PATH": os.environ["PATH"],
            "HOME": folder,
            "TMPDIR": folder,
            "SERVICES": "s3",
            "GATEWAY_LISTEN": f"127.0.0.1:{port}",
            "GATEWAY_SERVER": "hypercorn",  # the other one listens on all interfaces
            "USE_SSL": "0",
            "DISABLE_EVENTS": "1",
            "SKIP_SSL_CERT_DOWNLOAD": "1",
            "DNS_ADDRESS": "0",
            "LS_LOG": "error",
        }
        with server([str(python), "-m", "localstack.runtime.main"], port, settings):
            asked(port, "PUT", "/bucket")
            yield {**S3_ENV, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}"}
