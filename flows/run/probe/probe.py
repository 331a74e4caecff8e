"""A probe of one endpoint: its findings as data, and the config that follows from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from evalcube import known_as
from evalcube.flows.config.load import load_config, parse_config
from evalcube.flows.config.models import Model
from evalcube.flows.config.recipes import suite_text
from evalcube.flows.config.suites import model_section
from evalcube.flows.errors import SweepError, no_bare_text
from evalcube.flows.read.status import flow
from evalcube.flows.run.probe.asking import Host, host_of
from evalcube.flows.run.probe.checks import ProbeFinding, findings
from evalcube.storage.urls import redacted

_FILES = (".yaml", ".yml")


@known_as("evalcube.results")
@dataclass(frozen=True)
class ProbeResult:
    """Findings of a probe."""

    model: str
    endpoint: str
    requests: int
    findings: tuple[ProbeFinding, ...]
    config: tuple[str, ...]
    """Lines of a config that follow."""

    @property
    def vices(self) -> list[str]:
        """What the endpoint does other than it was asked to, in words."""
        return [finding.seen for finding in self.findings if finding.verdict == "vice"]

    @property
    def exit_code(self) -> int:
        """1 where the endpoint misbehaves, else 0."""
        return int(bool(self.vices))

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON values."""
        return {"schema": "evalcube.probe", "schema_version": 1, "vices": self.vices, **asdict(self)}


def probe(model: str | Path, key_envs: Sequence[str] = ()) -> ProbeResult:
    """Test how an endpoint behaves, with at most 40 requests; their replies are not stored.

    Parameters
    ----------
    model
        The model to probe: ``[NAME=]ENDPOINT`` as for ``evalcube run --model``, or the path of a config with one model.
    key_envs
        Names of environment variables with API keys: a name alone is for all http(s) endpoints, ``NAME=VARIABLE`` for
        one model. Default: no key.

    Returns
    -------
    ProbeResult
        Findings, and lines to copy into a config; ``exit_code`` is 1 if the endpoint misbehaves.

    Raises
    ------
    SweepError
        If the endpoint does not answer the simplest request, or a config has not one model.
    ConfigError
        If the model is wrong.

    Examples
    --------
    >>> import evalcube as ec
    >>> ec.probe("sim:").vices
    []
    """
    no_bare_text(key_envs=key_envs)
    with host_of(_load_model(model, key_envs)) as host:
        checks = findings(host)
        config = _config(host, {finding.name: finding for finding in checks})
        return ProbeResult(host.model.name, redacted(host.model.addresses[0]), host.sent, checks, config)


def _load_model(target: str | Path, key_envs: Sequence[str]) -> Model:
    if str(target).endswith(_FILES):
        sweep = load_config(target)
    else:
        sweep = parse_config(suite_text("quick"), models=model_section([str(target)], key_envs))
    models = [model for model in sweep.models if model.measured]
    if len(models) != 1:
        problem = f"`model`: one model is probed, and {target} has {len(models)}"
        raise SweepError(problem, "Give a config with one model, or an address")
    return models[0]


def _config(host: Host, checks: Mapping[str, ProbeFinding]) -> tuple[str, ...]:
    """Return what a config says of such an endpoint."""
    model = host.model
    named: dict[str, Any] = {
        "name": model.name,
        "endpoint": redacted(model.addresses[0]),
        "model": model.model,
        "api": model.api,
        **({} if model.key_env is None else {"key_env": model.key_env}),
        **({"stream": True} if checks["speed"].verdict == "ok" else {}),
    }
    params = host.fit_params({"temperature": 0, "max_tokens": 4096 if host.thinks else 1024})
    params |= {"seed": 1} if checks["seed"].verdict == "ok" else {}
    levels = ("low", "high") if checks["effort"].verdict == "ok" else ()
    samplers = {level: {**params, "effort": level} for level in levels} or {"default": params}
    fields = ", ".join(f"{name}: {flow(values)}" for name, values in samplers.items())
    again = ("repeats: 3",) if checks["repeats"].seen == "repeats differ" else ()
    return f"models: [{flow(named)}]", f"samplers: {{{fields}}}", *again
