"""Probes one endpoint or two, or asks cached answers again; what was found, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from evalcube import known_as
from evalcube.flows.config.load import load_config, parse_config
from evalcube.flows.config.models import Model
from evalcube.flows.config.recipes import suite_text
from evalcube.flows.config.suites import model_section
from evalcube.flows.cube_like import OneCube
from evalcube.flows.errors import SweepError, need_number, no_bare_text
from evalcube.flows.read.status import flow
from evalcube.flows.run.probe.asking import MOST, Host, host_of
from evalcube.flows.run.probe.checks import ProbeFinding, findings
from evalcube.flows.run.probe.pairs import Paired, compare_hosts, compare_recorded
from evalcube.stages.reply.body import parse_body
from evalcube.storage.urls import redacted

SCHEMA = "evalcube.probe"
_FILES = (".yaml", ".yml")
_MOST_BYTES, _MOST_CHARS = 4_000_000, 300
"""Of the file of an earlier probe, and of a text in it."""
MOST_AGAIN = 1000
"""Cached answers that are asked again at most."""


@dataclass(frozen=True)
class Probed:
    """What was found of one endpoint."""

    model: str
    endpoint: str
    requests: int
    findings: tuple[ProbeFinding, ...] = ()
    config: tuple[str, ...] = ()
    """Lines of a config that follow."""


@known_as("evalcube.results")
@dataclass(frozen=True)
class ProbeResult:
    """What a probe found."""

    models: tuple[Probed, ...]
    paired: Paired | None = None
    """Of two endpoints, or of a cube's answers and those of today."""
    changes: tuple[str, ...] = ()
    """What an earlier probe saw otherwise, in words."""
    unpaired: str = ""
    """Why two endpoints are not compared, where that is so."""

    @property
    def vices(self) -> list[str]:
        """What endpoints do other than they were asked to, in words."""
        return [
            f"{one.model}: {finding.seen}"
            for one in self.models
            for finding in one.findings
            if finding.verdict == "vice"
        ]

    @property
    def exit_code(self) -> int:
        """1 where there is a vice or a change; else 2 where not all that was asked could be compared, else 0."""
        found = self.vices or self.changes or (self.paired and self.paired.changes)
        return 1 if found else 2 * bool(self.unpaired or (self.paired and self.paired.unanswered))

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON values: what `since` reads."""
        pairs = None if self.paired is None else self.paired.to_dict()
        head = {"schema": SCHEMA, "schema_version": 1, "vices": self.vices}
        return {**head, **asdict(self), "paired": pairs}


def probe(
    models: str | Sequence[str],
    key_envs: Sequence[str] = (),
    *,
    against: OneCube | None = None,
    cache: str | Path | None = None,
    limit: int = MOST,
    since: str | Path | None = None,
) -> ProbeResult:
    """Find out what an endpoint really does, with at most 40 requests; nothing is kept of them.

    Parameters
    ----------
    models
        One model or two, each ``[NAME=]ENDPOINT`` as for ``evalcube run --model``, or a config with one or two models.
        Two are compared, and asked ten questions of the suite ``quick`` each, too.
    key_envs
        Each the name of an environment variable with an API key, for all http(s) endpoints, or ``NAME=VARIABLE``.
    against
        A cube with answers of the model: some of them are asked again, past all caches, in the place of the probe.
    cache
        Where the replies of that cube are; default: this user's own, or those beside it.
    limit
        Answers of that cube that are asked again, 1 to 1000.
    since
        File with the JSON of an earlier probe: what it saw otherwise is told.

    Returns
    -------
    ProbeResult
        Findings by endpoint, the paired comparison, changes; ``exit_code`` is 1 where there is a vice or a change,
        else 2 where two endpoints could not be compared: ``unpaired`` says why.

    Raises
    ------
    SweepError
        If there are more than two models, an endpoint does not answer the simplest request, or nothing of `against` can
        be compared.
    ConfigError
        If the models are wrong.

    Examples
    --------
    >>> import evalcube as ec
    >>> ec.probe("sim:").vices
    []
    """
    no_bare_text(key_envs=key_envs)
    chosen = _models([models] if isinstance(models, str) else models, key_envs)
    need_number("limit", limit, whole=True)
    if not 1 <= limit <= MOST_AGAIN:
        problem = f"`limit` must be between 1 and {MOST_AGAIN}, got {limit}"
        raise SweepError(problem, "Give a number such as 200")
    if against is not None:
        if len(chosen) > 1 or since is not None:
            raise SweepError(
                "`against` compares one model with what it was, and neither with another nor with `since`",
                "Give one model, and no `since`",
            )
        paired, sent = compare_recorded(against, cache, chosen[0], limit)
        return ProbeResult((Probed(chosen[0].name, redacted(chosen[0].addresses[0]), sent),), paired)
    if cache is not None:
        raise SweepError("`cache` goes with `against`, as a probe keeps no replies", "Leave it out")
    before = [] if since is None else _former(since, len(chosen))
    with ExitStack() as stack:
        hosts = [stack.enter_context(host_of(model)) for model in chosen]
        found = [findings(host) for host in hosts]
        between, missing = None, ""
        if len(hosts) > 1:
            try:
                between = compare_hosts(*hosts)
            except SweepError as error:  # which makes nothing of what was found
                missing = error.message
        result = ProbeResult(tuple(map(_probed, hosts, found)), between, unpaired=missing)
    return replace(result, changes=_changes(before, result.models))


def _models(targets: Sequence[str], key_envs: Sequence[str]) -> list[Model]:
    """The models of addresses and of configs, in their order, each with a name of its own."""
    no_bare_text(models=targets)
    section = model_section([one for one in targets if not str(one).endswith(_FILES)], key_envs)
    for number, one in enumerate(section):
        if number and one["name"] == section[0]["name"]:  # two hosts may call their model the same
            one["name"] = f"{one['name']}-{number + 1}"
    given = iter(parse_config(suite_text("quick"), models=section).models if section else ())
    found: list[Model] = []
    for target in targets:
        is_file = str(target).endswith(_FILES)
        found += [one for one in load_config(target).models if one.measured] if is_file else [next(given)]
    if not 1 <= len(found) <= 2:
        problem = f"`models`: one model is probed, or two side by side, got {len(found)}"
        raise SweepError(problem, "Give one or two")
    return found


def _probed(host: Host, found: tuple[ProbeFinding, ...]) -> Probed:
    config = _config(host, {finding.name: finding for finding in found})
    return Probed(host.model.name, redacted(host.model.addresses[0]), host.sent, found, config)


def _config(host: Host, found: Mapping[str, ProbeFinding]) -> tuple[str, ...]:
    """What a config says of such an endpoint."""
    model = host.model
    named: dict[str, Any] = {
        "name": model.name,
        "endpoint": redacted(model.addresses[0]),
        "model": model.model,
        "api": model.api,
        **({} if model.key_env is None else {"key_env": model.key_env}),
        **({"stream": True} if found["speed"].verdict == "ok" else {}),
    }
    params = host.fitted({"temperature": 0, "max_tokens": 4096 if host.thinks else 1024})
    params |= {"seed": 1} if found["seed"].verdict == "ok" else {}
    levels = ("low", "high") if found["effort"].verdict == "ok" else ()
    samplers = {level: {**params, "effort": level} for level in levels} or {"default": params}
    told = ", ".join(f"{name}: {flow(fields)}" for name, fields in samplers.items())
    again = ("repeats: 3",) if found["repeats"].seen == "repeats differ" else ()
    return f"models: [{flow(named)}]", f"samplers: {{{told}}}", *again


def _former(path: str | Path, number: int) -> list[Any]:
    """The models of an earlier probe, which anybody may have written.

    Raises
    ------
    SweepError
        The file is none, or cannot be read.
    """
    remedy = "Give a file that `evalcube probe --json` wrote"
    try:
        with Path(path).open("rb") as file:
            document = parse_body(file.read(_MOST_BYTES))
    except OSError as error:
        raise SweepError(f"`since`: '{path}' cannot be read ({error.strerror})", remedy) from None
    models = (
        document.get("models") if isinstance(document, dict) and document.get("schema") == SCHEMA else None
    )
    if not isinstance(models, list):
        raise SweepError(f"`since`: '{path}' is no probe's JSON", remedy)
    told = [
        one
        for one in models
        if isinstance(one, dict) and isinstance(one.get("findings"), list) and one["findings"]
    ]
    if len(told) != number:
        raise SweepError(
            f"`since`: '{path}' has findings of {len(told)} models, and the number probed now is {number}",
            "Give what a probe of as many wrote, without `against`",
        )
    return told


def _changes(before: Sequence[Any], now: Sequence[Probed]) -> tuple[str, ...]:
    """What is seen otherwise than before, model by model."""
    changes = []
    for then, one in zip(before, now, strict=False):
        if then.get("model") != one.model:
            former = str(then.get("model"))[:_MOST_CHARS]
            changes.append(f"{one.model}: compared with {former}, another model")
        told = {str(old.get("name")): old for old in then["findings"] if isinstance(old, dict)}
        for finding in one.findings:
            old = told.get(finding.name, asdict(finding))
            if (old.get("verdict"), old.get("seen")) != (finding.verdict, finding.seen):
                said = str(old.get("seen"))[:_MOST_CHARS]
                changes.append(f"{one.model}: {finding.name}: {said} before, {finding.seen} now")
    return tuple(changes)
