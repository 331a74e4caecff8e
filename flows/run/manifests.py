"""Makes the manifests of a sweep on Kubernetes from its config, and refuses what could not work there."""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from typing import Literal

from evalcube.deploy.kubernetes import KubernetesJob, manifest, resource_name
from evalcube.flows.config.cluster import KubernetesSection
from evalcube.flows.config.models import SweepConfig
from evalcube.flows.config.sites import cluster_section
from evalcube.flows.config.suites import load_sweep
from evalcube.flows.errors import SweepError
from evalcube.flows.run.servers import is_managed
from evalcube.storage.urls import directory_of, is_directory, scheme_of

Form = Literal["daskjob", "job"]


def manifest_of(
    config: str | Path,
    *,
    cluster: str | Path | None = None,
    image: str | None = None,
    namespace: str | None = None,
    form: Form = "daskjob",
) -> str:
    """The manifests as YAML, to be applied with kubectl.

    Parameters
    ----------
    config
        Path of a config, or a suite's name.
    cluster
        Name or file of a cluster of kind kubernetes; default: the config's, else one of one worker.
    image, namespace
        In place of the cluster's.
    form
        ``daskjob``: a DaskJob, whose cluster goes when the run has ended. ``job``: a DaskCluster with a Job, which also
        outlives the loss of its node.

    Raises
    ------
    ConfigError
        With all problems of the config or the cluster's description.
    SweepError
        If the cluster is of another kind, there is no image, or something of the sweep is out of the pods' reach.
    """
    if form not in ("daskjob", "job"):
        raise SweepError(f"`form`: '{form}' is none", "Give daskjob or job")
    settings = load_sweep(config)
    section = _section(settings, cluster)
    chosen = image or section.image
    if chosen is None:
        raise SweepError("no image is named", "Give `image`: deploy/kubernetes/Dockerfile builds one")
    _check_reach(settings, section)
    document = settings.model_dump(mode="json", exclude_unset=True, exclude={"cluster"})
    path = Path(config)
    text = path.read_text(encoding="utf-8-sig") if path.is_file() else json.dumps(document, indent=1)
    job = KubernetesJob(
        resource_name(section.name or settings.name),
        chosen,
        text,
        namespace=namespace or section.namespace,
        form=form,
        minimum=section.workers.minimum,
        maximum=max(section.workers.minimum, section.workers.maximum),
        cores=section.cores,
        memory=section.memory,
        secrets=section.secrets,
        claims=section.claims,
        service_account=section.service_account,
        patience=int(section.patience),
    )
    return manifest(job)


def _section(settings: SweepConfig, cluster: str | Path | None) -> KubernetesSection:
    section = cluster_section(settings, cluster)
    if section is None:
        return KubernetesSection(kind="kubernetes")
    if not isinstance(section, KubernetesSection):
        raise SweepError(
            f"this sweep's cluster is of kind {section.kind}",
            "Give one of kind kubernetes: in the config, or as `cluster`",
        )
    return section


def _check_reach(settings: SweepConfig, section: KubernetesSection) -> None:
    """Refuse what pods could not reach, or what would be lost with them."""
    for model in settings.models:
        if is_managed(model):
            raise SweepError(
                f"models[{model.name}].endpoint: '{model.endpoint}' is served on this machine only",
                "Give the address of a server that the pods reach",
            )
    mounts = [PurePosixPath(path) for path in section.claims.values()]
    for what, address in (("cube", settings.cube), ("cache", settings.cache)):
        if not is_directory(address):
            continue
        # A relative path is below the working directory, which is a volume's.
        place = PurePosixPath(directory_of(address) if scheme_of(address) else address)
        kept = bool(mounts) and (not place.is_absolute() or any(place.is_relative_to(one) for one in mounts))
        if not kept:
            raise SweepError(
                f"{what}: '{address}' would be lost with its pod",
                "Give an address such as s3://bucket/name, or a volume that holds it: claims: {NAME: /PATH}",
            )
