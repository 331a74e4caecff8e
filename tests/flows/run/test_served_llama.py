"""llama.cpp's own server by its preset, with the small real model; it is killed in mid-sweep."""

import json
import os
import sys
from pathlib import Path

import pytest

from evalcube.deploy.servers import local_model
from tests.flows.support import evalcube, write_config

pytestmark = [
    pytest.mark.model,
    pytest.mark.skipif(os.environ.get("EVALCUBE_SKIP_MODEL") == "1", reason="EVALCUBE_SKIP_MODEL=1"),
]
SERVER = Path(__file__).parents[2] / "deploy" / "servers" / "llama_server.py"
DIES = """
def relay(port, behind, died):
    \"\"\"Pass on what comes to a port, and die in the midst of the eighth question of the first life.\"\"\"
    import os, signal, socket
    from pathlib import Path

    asked = []

    def pump(source, target, questions):
        while data := source.recv(1 << 16):
            if questions and b"/completions" in data and not Path(died).exists():
                asked.append(1)
                if len(asked) == 8:
                    Path(died).touch()
                    os.kill(os.getpid(), signal.SIGKILL)
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)

    listener = socket.create_server(("127.0.0.1", port))
    while True:
        peer, _ = listener.accept()
        server = socket.create_connection(("127.0.0.1", behind))
        for source, target in ((peer, server), (server, peer)):
            threading.Thread(target=pump, args=(source, target, source is peer), daemon=True).start()
"""
"""Goes before the server's own code: it is killed by what it is asked, so however fast it answers."""


def processes_of(path):
    """Process ids of the Python processes that run a file."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if len(words) > 1 and words[1] == str(path).encode():
            found.append(int(folder.name))
    return found


def test_run__a_preset_serves_the_model_and_starts_it_again(tmp_path, monkeypatch):
    program = tmp_path / "bin" / "llama-server"
    own = tmp_path / "server.py"  # so that only this test's process is found
    program.parent.mkdir()
    code = SERVER.read_text().replace("settings.port = options.port", "settings.port = 0")
    waits = "threading.Event().wait()"
    assert waits in code
    behind = 'int(server.listening_address.rsplit(":", 1)[1])'
    code = code.replace(waits, f"relay(options.port, {behind}, {str(tmp_path / 'died')!r})")
    own.write_text(code.replace("def main():", f"{DIES}\n\ndef main():", 1))
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{own}" "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    serve = {
        "preset": "llama.cpp",
        "model": str(local_model.weights_path()),
        "args": "--ctx-size 1024 --parallel 2",
        "env": {"OMP_WAIT_POLICY": "passive"},
    }
    config = {
        "name": "test",
        "trials": 24,  # enough that some are to be answered when it is killed
        "cube": str(tmp_path / "cube.zarr"),
        "cache": str(tmp_path / "cache"),
        "models": [{"name": "smollm", "serve": serve, "limits": {"connections": 2, "retries": 0}}],
        "samplers": {"greedy": {"temperature": 0, "max_tokens": 12}},
        "tasks": {"arithmetic": {"params": {"length": 3}}},
    }

    code, output, errors = evalcube("run", write_config(tmp_path, config), cwd=tmp_path)

    assert code == 0, errors
    assert (tmp_path / "died").exists()
    assert "24 of 24 trials done" in output + errors
    assert processes_of(own) == []
    (row,) = json.loads(evalcube("status", tmp_path / "cube.zarr", "--json", cwd=tmp_path)[1])["models"]
    (engine,) = row["engines"]
    assert (engine["engine"], engine["quantization"]) == ("llama.cpp", "Q4_1")
    assert row["fingerprints"] == {engine["version"]: 24}
