"""Hands a sweep to Slurm: a folder with configs and scripts, one job for each part, and a record of it."""

from __future__ import annotations

import datetime
import json
import os
import secrets
import shlex
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalcube.deploy import slurm
from evalcube.deploy.clusters import ExistingScheduler
from evalcube.deploy.errors import ClusterError
from evalcube.deploy.slurm import JobSettings, clock, slug
from evalcube.flows.config.cluster import SlurmSection
from evalcube.flows.config.load import cluster_section
from evalcube.flows.config.models import Sweep
from evalcube.flows.errors import SweepError
from evalcube.flows.plan.build import build_plan
from evalcube.flows.run.cluster import chosen_cluster
from evalcube.flows.run.jobs.chain import MOST_JOBS, Chain, job_script
from evalcube.flows.run.jobs.submissions import (
    Submission,
    SubmittedPart,
    alone,
    live_jobs,
    remember,
    submissions_of,
)
from evalcube.storage.cube.address import space_of
from evalcube.storage.urls import STORE_VARIABLES, absolute, at_home, directory_of, is_directory


@dataclass(frozen=True)
class SweepPart:
    """A sweep of one of a sweep's models."""

    name: str
    """As a part of file and job names; unique in the sweep."""
    model: str
    config: Mapping[str, Any]
    """Its config, as JSON values."""
    cube: str


def cut(settings: Sweep) -> list[SweepPart]:
    """Cut a sweep into parts, one for each model that is measured.

    Two drivers never write one cube: so each part has its own, and they are merged when all are complete. A sweep of
    one model works on the sweep's cube itself.

    Raises
    ------
    SweepError
        If a bound of spending would hold for each part.
    """
    models = list(dict.fromkeys(model.name for model, _, _ in settings.combinations()))
    if len(models) > 1 and settings.spend is not None:
        raise SweepError(
            "spend: each of several jobs would spend as much",
            "Submit a config for each model, or take the bound out",
        )
    cube = absolute(settings.cube)
    if len(models) == 1:
        return [_part(settings, slug(models[0]), models[0], cube)]
    stem = cube.rstrip("/").removesuffix(".zarr")
    names = _names([slug(model) for model in models])
    return [
        _part(settings, name, model, f"{stem}.parts/{name}.zarr")
        for name, model in zip(names, models, strict=True)
    ]


def _names(names: Sequence[str]) -> list[str]:
    """The names, with numbers where several would be the same."""
    if len(set(names)) == len(names):
        return list(names)
    # All of them: the number of one alone may be how another ends.
    return [f"{name}-{index + 1}" for index, name in enumerate(names)]


def _part(settings: Sweep, name: str, measured: str, cube: str) -> SweepPart:
    fields = settings.model_dump(mode="json", exclude_unset=True, exclude={"cluster"})
    judging = {judge.model for judge in settings.judges}
    by_name = {model["name"]: model for model in fields["models"]}
    fields["models"] = [
        {**model, "measured": label == measured}
        for label, model in by_name.items()
        if label == measured or label in judging
    ]
    if settings.evaluations is not None:
        fields["evaluations"] = [
            {**rule, "models": [measured]}
            for rule in fields["evaluations"]
            if measured in (rule.get("models") or [measured])
        ]
    fields |= {"name": settings.name, "cube": cube, "cache": absolute(settings.cache)}
    return SweepPart(name, measured, fields, cube)


_NOWHERE = (
    "a sweep can be submitted to a running Dask cluster or to Slurm, and none is named",
    "Give `scheduler`, the address of one, or a `cluster` with an address or `slurm`; here use `evalcube run`",
)
_STATE_REMEDY = "Set XDG_STATE_HOME"


def job_settings(section: SlurmSection, settings: Sweep) -> JobSettings:
    """What the jobs of a sweep ask Slurm for; variables with its models' keys go along by name."""
    return JobSettings(
        **section.model_dump(exclude={"python", "container", "environment", "logs"}),
        environment=_variables(settings, section.environment),
        logs=str(_logs(section, settings)),
    )


def _variables(settings: Sweep, further: Sequence[str]) -> tuple[str, ...]:
    """Names of the variables that jobs need: with keys of models, for stores and servers, and further ones."""
    keys = [model.key_env for model in settings.models if model.key_env is not None]
    stores: list[str] = []
    if not (is_directory(settings.cube) and is_directory(settings.cache)):
        stores = sorted(name for name in os.environ if name.startswith(STORE_VARIABLES))
    served = [name for model in settings.models if model.serve for name in model.serve.env_from.values()]
    return tuple(dict.fromkeys((*keys, *stores, *further, *served)))


def _logs(section: SlurmSection, settings: Sweep) -> Path:
    if section.logs is not None:
        return at_home(section.logs).absolute()
    beside = directory_of(settings.cube).parent if is_directory(settings.cube) else Path.cwd()
    return beside / "slurm-logs"


@dataclass(frozen=True)
class PreparedSubmission:
    """A submission that is not submitted yet."""

    name: str
    folder: Path
    cube: str
    parts: tuple[SweepPart, ...]
    scripts: tuple[str, ...]
    walltime: float

    def job_name(self, part: SweepPart) -> str:
        """The name of all jobs of a part."""
        return f"{self.name}-{part.name}"

    def __str__(self) -> str:
        many = len(self.parts) > 1
        bound = f"each job {clock(self.walltime)}, at most {MOST_JOBS} jobs"
        lines = [f"{len(self.parts)} {'chains' if many else 'chain'} of jobs, {bound}; folder {self.folder}"]
        for part, script in zip(self.parts, self.scripts, strict=True):
            lines += ["", f"# {part.name}: {part.model} -> {part.cube}", script.rstrip()]
        if many:
            cubes = [self.cube, *(part.cube for part in self.parts)]
            lines += ["", "# when all are complete, by the last job:", f"evalcube merge {shlex.join(cubes)}"]
        return "\n".join(lines)


def prepare(settings: Sweep, section: SlurmSection) -> PreparedSubmission:
    """Make ready what `submit` hands to Slurm; nothing is written.

    Raises
    ------
    SweepError
        If the sweep cannot be submitted so.
    """
    job = job_settings(section, settings)
    build_plan(settings)  # what is wrong with it is said now, and not by a job in the night
    parts = cut(settings)
    cube = absolute(settings.cube)
    if len(parts) > 1 and space_of(cube).is_there():
        raise SweepError(
            f"{cube} is there already, and the cubes of several jobs are merged into a new one",
            "Give another `cube`: what the cache has is not asked again",
        )
    name = f"evalcube-{slug(settings.name)}-{secrets.token_hex(3)}"
    folder = Path(job.logs) / name
    scripts = tuple(job_script(name, part.name, folder / part.name, section, job) for part in parts)
    return PreparedSubmission(name, folder, cube, tuple(parts), scripts, section.walltime)


def submit(prepared: PreparedSubmission) -> Submission:
    """Write what the jobs need, submit the first job of each part, and remember it.

    Raises
    ------
    SweepError
        If a chain of jobs works on such a cube already, or the folder or the record cannot be written.
    ClusterError
        If sbatch refuses a job; those that it took before are cancelled. If Slurm does not answer.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(alone())
        except TimeoutError as error:
            problem = f"another `evalcube submit` of yours is at work: {error}"
            raise SweepError(problem, "Wait for it") from None
        except OSError as error:
            raise SweepError(f"the record of the jobs cannot be written: {error}", _STATE_REMEDY) from None
        _refuse_second(prepared)
        _write(prepared)
        return _submit_jobs(prepared)


def _write(prepared: PreparedSubmission) -> None:
    """What the jobs need."""
    try:
        prepared.folder.mkdir(parents=True, mode=0o700)
        for part, script in zip(prepared.parts, prepared.scripts, strict=True):
            place = prepared.folder / part.name
            place.mkdir(mode=0o700)
            (place / "config.yaml").write_text(json.dumps(part.config, indent=1))
            (place / "job.sh").write_text(script)
            Chain(prepared.walltime).write(place / "chain.json")
        cubes = {"cube": prepared.cube, "parts": {part.name: part.cube for part in prepared.parts}}
        (prepared.folder / "submission.json").write_text(json.dumps(cubes, indent=1))
    except OSError as error:
        problem = f"{prepared.folder}: cannot be written: {error.strerror}"
        raise SweepError(problem, "Give another `logs`") from None


def _submit_jobs(prepared: PreparedSubmission) -> Submission:
    """Submit the first job of each part, and remember them."""
    submitted: list[SubmittedPart] = []
    try:
        for part, script in zip(prepared.parts, prepared.scripts, strict=True):
            number = slurm.submit(script)
            submitted.append(SubmittedPart(part.name, prepared.job_name(part), number, part.cube))
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        made = Submission(prepared.name, now, prepared.cube, str(prepared.folder), tuple(submitted))
        remember(made)
    except OSError as error:
        slurm.cancel([part.job for part in submitted])
        raise SweepError(f"the record of the jobs cannot be written: {error}", _STATE_REMEDY) from None
    except ClusterError:
        slurm.cancel([part.job for part in submitted])
        raise
    return made


def _refuse_second(prepared: PreparedSubmission) -> None:
    """Two chains on one cube would wait for each other, and spend for it."""
    for cube in dict.fromkeys((prepared.cube, *(part.cube for part in prepared.parts))):
        for known in submissions_of(cube):
            jobs = sorted(live_jobs(known))
            if jobs:
                numbers = f"job{'s' if len(jobs) > 1 else ''} {', '.join(map(str, jobs))}"
                raise SweepError(
                    f"{cube}: {known.name} works on it already ({numbers})",
                    f"Let it go on, or end it first: evalcube stop {known.name}",
                )


def place_of(
    settings: Sweep, scheduler: str | None = None, cluster: str | None = None
) -> ExistingScheduler | SlurmSection:
    """Where a sweep is submitted.

    Parameters
    ----------
    settings
        The sweep's config, whose own `cluster` counts last.
    scheduler
        Address of a scheduler.
    cluster
        What a config's `cluster` may be, or a file with it.

    Raises
    ------
    SweepError
        If nowhere is named.
    ConfigError
        With all problems of the cluster's description.
    """
    section = cluster_section(settings, cluster) if scheduler is None else None
    if isinstance(section, SlurmSection):
        return section
    found = chosen_cluster(settings, cluster=cluster, scheduler=scheduler)
    if not isinstance(found, ExistingScheduler):
        raise SweepError(*_NOWHERE)
    return found
