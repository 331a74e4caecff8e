"""A small server that speaks the part of the Hugging Face Hub's HTTP API that fetching needs, with faults."""

from __future__ import annotations

import hashlib
import io
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from evalcube.stages.generate.dataset import kept
from evalcube.stages.generate.dataset.hub import fetch
from evalcube.stages.generate.recent import Recent

MAIN = "main"


def jsonl(rows: list[dict[str, Any]]) -> bytes:
    """Rows as a JSONL file."""
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def parquet(rows: list[dict[str, Any]], **options: Any) -> bytes:
    """Rows as a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    target = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), target, **options)
    return target.getvalue()


@dataclass
class Repo:
    """One data set: files by revision, and what the hub says of it."""

    files: dict[str, bytes]
    card: dict[str, Any] = field(default_factory=lambda: {"license": "mit"})
    gated: bool = False
    """Whether only who has a token may have its files."""
    renamed: str = ""
    """The name that it has now."""
    branches: dict[str, dict[str, bytes]] = field(default_factory=dict)

    def tree(self, revision: str) -> tuple[str, Mapping[str, bytes]] | None:
        """Commit and files of a revision; None if there is no such."""
        for name, files in {MAIN: self.files, **self.branches}.items():
            commit = hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()[:40]
            if revision in (name, commit):
                return commit, files
        return None


class Hub:
    """The data sets of a running server, what it was asked, and how it fails."""

    def __init__(self) -> None:
        self.repos: dict[str, Repo] = {}
        self.asked: list[str] = []
        """``METHOD path`` of each request."""
        self.tokens: list[str] = []
        """What authorization each request had."""
        self.faults: list[Callable[[BaseHTTPRequestHandler], bool]] = []
        """Each is asked before a request is answered, and has answered it if it says so."""
        self.url = ""

    def add(self, name: str, files: dict[str, bytes], **more: Any) -> Repo:
        """Serve a data set."""
        self.repos[name] = Repo(files, **more)
        return self.repos[name]

    def commit(self, name: str, revision: str = MAIN) -> str:
        """The commit of a revision."""
        found = self.repos[name].tree(revision)
        assert found is not None
        return found[0]

    def fail(self, part: str, status: int, times: int = 1, **headers: str) -> None:
        """Answer the next requests whose path has a part with a status."""
        left = [times]

        def fault(handler: BaseHTTPRequestHandler) -> bool:
            if part not in handler.path or left[0] == 0:
                return False
            left[0] -= 1
            send(handler, status, b"no", headers)
            return True

        self.faults.append(fault)

    def answer(self, part: str, body: bytes) -> None:
        """Answer all requests whose path has a part as a proxy would, with a page."""

        def fault(handler: BaseHTTPRequestHandler) -> bool:
            if part in handler.path:
                send(handler, 200, body, {"Content-Type": "text/html"})
            return part in handler.path

        self.faults.append(fault)

    def cut(self, part: str, times: int = 1) -> None:
        """Break the connection amid the next downloads whose path has a part."""
        left = [times]

        def fault(handler: BaseHTTPRequestHandler) -> bool:
            if handler.command != "GET" or part not in handler.path or left[0] == 0:
                return False
            left[0] -= 1
            handler.send_response(200)
            handler.send_header("Content-Length", "100000")
            handler.end_headers()
            handler.wfile.write(b"{")
            handler.wfile.flush()
            handler.close_connection = True
            handler.connection.shutdown(socket.SHUT_RDWR)
            return True

        self.faults.append(fault)


def send(
    handler: BaseHTTPRequestHandler, status: int, body: bytes, headers: Mapping[str, str] | None = None
) -> None:
    """Answer a request."""
    handler.send_response(status)
    for name, value in (headers or {}).items():
        handler.send_header(name.replace("_", "-"), value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(body)


def _sibling(name: str, data: bytes) -> dict[str, Any]:
    blob = hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
    found: dict[str, Any] = {"rfilename": name, "size": len(data), "blobId": blob}
    if name.endswith(".parquet"):  # as large files are
        sha256 = hashlib.sha256(data).hexdigest()
        found["lfs"] = {"sha256": sha256, "size": len(data), "pointerSize": 130}
    return found


def _answer(hub: Hub, handler: BaseHTTPRequestHandler) -> None:
    path = unquote(urlsplit(handler.path).path)
    parts = path.strip("/").split("/")
    api = parts[:2] == ["api", "datasets"]
    owner = parts[2:4] if api else parts[1:3]
    name = "/".join(owner)
    repo = hub.repos.get(name)
    if repo is None:
        send(handler, 404, b"{}", {"X-Error-Code": "RepoNotFound"})
        return
    if repo.renamed:
        send(handler, 307, b"", {"Location": handler.path.replace(name, repo.renamed)})
        return
    if api:
        revision = "/".join(parts[5:]) if len(parts) > 5 else MAIN
        tree = repo.tree(revision)
        if tree is None:
            send(handler, 404, b"{}", {"X-Error-Code": "RevisionNotFound"})
            return
        said = {
            "id": name,
            "sha": tree[0],
            "gated": "auto" if repo.gated else False,
            "cardData": repo.card,
            "siblings": [_sibling(*item) for item in tree[1].items()],
        }
        send(handler, 200, json.dumps(said).encode(), {"Content-Type": "application/json"})
        return
    tree = repo.tree(parts[4])
    file = "/".join(parts[5:])
    if repo.gated and not handler.headers.get("authorization"):
        send(handler, 403, b"{}", {"X-Error-Code": "GatedRepo"})
    elif tree is None or file not in tree[1]:
        send(handler, 404, b"{}", {"X-Error-Code": "EntryNotFound"})
    else:
        data = tree[1][file]
        etag = hashlib.sha256(data).hexdigest()
        send(handler, 200, data, {"ETag": f'"{etag}"', "X-Repo-Commit": tree[0]})


@contextmanager
def serving() -> Iterator[Hub]:
    """A running server; point ``HF_ENDPOINT`` at its `Hub.url`."""
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            hub.asked.append(f"{self.command} {self.path}")
            hub.tokens.append(self.headers.get("authorization", ""))
            for fault in hub.faults:
                if fault(self):
                    return
            _answer(hub, self)

        do_HEAD = do_GET  # noqa: N815 - the name that the base class calls

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A running hub that `hf://` addresses lead to, and nothing fetched from it yet; nobody waits for it."""
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(kept, "_versions", {})  # what cubes of other tests have asked
    monkeypatch.setattr(kept, "_offers", Recent(9))
    monkeypatch.setattr(fetch, "sleep", lambda _: None)
    monkeypatch.setattr("huggingface_hub.file_download.time", SimpleNamespace(sleep=lambda _: None))
    with serving() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        yield hub


def cut_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have nothing answer any more where the hub is asked for."""
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")


GSM = [
    {
        "question": f"Ann has {i} pens and buys {i + 2} more. How many has she?",
        "answer": f"{i}+{i + 2}\n#### {2 * i + 2}",
    }
    for i in range(1, 41)
]
"""Word problems of our own in the form of GSM8K."""
