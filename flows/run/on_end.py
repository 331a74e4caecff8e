"""Starts a program, or tells an address, when a run has ended: whatever a config says under ``on_end``.

What is sent is the run's summary without what endpoints said, which may quote a model's answer. A hook that fails is
reported, and changes nothing in how the run ended.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from evalcube import EvalcubeError
from evalcube.flows.config.models import SweepConfig
from evalcube.flows.config.on_end import OnEnd
from evalcube.flows.run.summary import RunSummary

_SHOWN_CHARACTERS = 500


class Ended:
    """How a run ended, as far as it is known."""

    def __init__(self) -> None:
        self.summary: RunSummary | None = None


@contextmanager
def when_ended(settings: SweepConfig, note: Callable[[str], None]) -> Iterator[Ended]:
    """Do what the config wants once the context is left, by an error too; not after a second Ctrl-C.

    Parameters
    ----------
    settings
        The sweep's config, as its user gave it.
    note
        Called with what the user should read.

    Yields
    ------
    Ended
        Where the run's summary is to be put.
    """
    ended = Ended()
    try:
        yield ended
    except Exception as error:
        said = str(error) if isinstance(error, EvalcubeError) else ""
        failed = {"reason": "failed", "cube": settings.cube, "error": type(error).__name__, "message": said}
        _notify(settings, failed, note)
        raise
    if ended.summary is not None:
        summary = {name: value for name, value in ended.summary.to_dict().items() if name != "details"}
        _notify(settings, summary, note)


def _notify(settings: SweepConfig, document: dict[str, Any], note: Callable[[str], None]) -> None:
    hook = settings.on_end
    if hook is None or document["reason"] not in hook.when:
        return
    data = json.dumps({"name": settings.name, **document}, default=str).encode()
    if hook.command is not None and (problem := _run(hook, data)):
        note(f"on_end.command: {problem}; the run itself ended as it says")
    if (hook.webhook or hook.webhook_env) and (problem := _post(hook, data)):
        note(f"on_end.webhook: {problem}; the run itself ended as it says")


def _run(hook: OnEnd, data: bytes) -> str:
    """Start the program and wait for it; returns what went wrong, empty if nothing did."""
    try:
        # A group of its own: what the program has started ends with it when it takes too long.
        process = subprocess.Popen(
            hook.command or (),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        return f"cannot be started ({error.strerror})"
    with process:
        try:
            _, errors = process.communicate(data, timeout=hook.timeout)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            return f"took longer than {hook.timeout:g} s and was ended"
    if process.returncode == 0:
        return ""
    said = errors.decode(errors="replace").strip()[-_SHOWN_CHARACTERS:]
    return f"ended with exit code {process.returncode}" + (f" ({said})" if said else "")


def _post(hook: OnEnd, data: bytes) -> str:
    """Post the summary; returns what went wrong, empty if nothing did. Neither address nor key is ever shown."""
    address = hook.webhook or os.environ.get(hook.webhook_env or "", "").strip()
    if not address.startswith(("http://", "https://")):
        return f"the environment variable {hook.webhook_env} holds no http(s) address"
    headers = {"Content-Type": "application/json"}
    if hook.key_env is not None:
        key = os.environ.get(hook.key_env, "").strip()
        if not key or not key.isascii() or not key.isprintable():
            return f"the environment variable {hook.key_env} is not set, or holds no key"
        headers["Authorization"] = f"Bearer {key}"
    try:
        request = urllib.request.Request(address, data, headers, method="POST")  # noqa: S310 - checked above
        opener = urllib.request.build_opener(_NoRedirects)
        with opener.open(request, timeout=hook.timeout):
            return ""
    except urllib.error.HTTPError as error:
        error.close()
        return f"was answered with {error.code}"
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None)
        return f"cannot be reached ({type(reason if isinstance(reason, Exception) else error).__name__})"


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows none: the key would go along to wherever the answer says."""

    def redirect_request(self, *_: object, **__: object) -> None:
        """Return no further request."""
