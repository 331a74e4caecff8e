"""Manifests of sweeps, checked strictly against the operator's definitions and Kubernetes' own schemas."""

import copy
import itertools
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from evalcube.deploy.errors import DeployError
from evalcube.deploy.kubernetes import KubernetesJob, manifest, resource_name
from tests.deploy.kubernetes.schemas import constants, problems

CONFIG = "name: x\n\nmodels:\n  - {name: a, note: '$HOME {{ x }} #'}  # é\n"
SMALL = KubernetesJob("my-sweep", "registry.example/evalcube:0.1.0", CONFIG)
FULL = replace(
    SMALL,
    namespace="evals",
    minimum=2,
    maximum=8,
    cores=2,
    memory="4Gi",
    secrets=("model-keys", "more"),
    claims={"results": "/results", "data": "/data"},
    service_account="evals",
)


def documents(job):
    return list(yaml.safe_load_all(manifest(job)))


def of_kind(job, kind):
    (found,) = [document for document in documents(job) if document["kind"] == kind]
    return found


def cluster_of(job):
    if job.form == "daskjob":
        return of_kind(job, "DaskJob")["spec"]["cluster"]["spec"]
    return of_kind(job, "DaskCluster")["spec"]


def driver_of(job):
    if job.form == "daskjob":
        return of_kind(job, "DaskJob")["spec"]["job"]["spec"]
    return of_kind(job, "Job")["spec"]["template"]["spec"]


BOTH = pytest.mark.parametrize("form", ["daskjob", "job"])


@BOTH
@pytest.mark.parametrize("job", [SMALL, FULL, replace(FULL, claims={}), replace(FULL, secrets=())])
def test_manifest__is_what_the_operator_accepts(form, job):
    found = documents(replace(job, form=form))

    assert [(document["kind"], problems(document)) for document in found] == [
        (document["kind"], []) for document in found
    ]
    scaled = [document["kind"] for document in found].count("DaskAutoscaler")
    assert scaled == (job.maximum > job.minimum)


def test_problems__finds_what_is_wrong():
    broken = copy.deepcopy(of_kind(FULL, "DaskJob"))
    broken["spec"]["cluster"]["spec"]["worker"]["spec"]["containers"][0]["volumeMount"] = []
    broken["spec"]["cluster"]["spec"]["worker"]["replicas"] = "two"
    del broken["spec"]["job"]

    assert len(problems(broken)) == 3


@BOTH
def test_manifest__names_agree_with_what_the_operator_makes_of_them(form):
    """The selector of a service that nobody answers is valid, and so is an address that nobody has."""
    job = replace(FULL, form=form)
    names = constants()
    service = names["SCHEDULER_NAME_TEMPLATE"].format(cluster_name=job.name)

    assert cluster_of(job)["scheduler"]["service"]["selector"] == {
        "dask.org/cluster-name": job.name,
        "dask.org/component": "scheduler",
    }
    config = of_kind(job, "ConfigMap")["data"]
    assert yaml.safe_load(config["cluster.yaml"]) == {
        "kind": "scheduler",
        "address": f"tcp://{service}:8786",
        "minimum": 2,
        "patience": "1800s",
    }
    assert service in driver_of(job)["initContainers"][0]["command"][-1]
    assert of_kind(job, "DaskAutoscaler")["spec"]["cluster"] == job.name
    volumes = {volume["name"]: volume for volume in driver_of(job)["volumes"]}
    assert volumes["config"]["configMap"]["name"] == of_kind(job, "ConfigMap")["metadata"]["name"]
    assert {document["metadata"]["namespace"] for document in documents(job)} == {"evals"}


@BOTH
def test_manifest__secrets_are_named_for_driver_and_workers_and_volumes_mounted_in_both(form):
    job = replace(FULL, form=form)
    (driver,), (worker,) = (
        driver_of(job)["containers"],
        cluster_of(job)["worker"]["spec"]["containers"],
    )

    expected = [{"secretRef": {"name": "model-keys"}}, {"secretRef": {"name": "more"}}]
    assert driver["envFrom"] == worker["envFrom"] == expected
    for pod, container in (
        (driver_of(job), driver),
        (cluster_of(job)["worker"]["spec"], worker),
    ):
        claims = {
            volume["name"]: volume["persistentVolumeClaim"]["claimName"]
            for volume in pod["volumes"]
            if "persistentVolumeClaim" in volume
        }
        mounts = {
            claims[mount["name"]]: mount["mountPath"]
            for mount in container["volumeMounts"]
            if mount["name"] in claims
        }
        assert mounts == FULL.claims
    assert driver["workingDir"] == "/results"


def test_manifest__carries_the_config_as_it_is():
    assert of_kind(SMALL, "ConfigMap")["data"]["sweep.yaml"] == CONFIG


def test_manifest__a_config_that_no_config_map_holds_is_refused():
    with pytest.raises(DeployError, match="config map"):
        manifest(replace(SMALL, config="#" * 1_000_000))


@pytest.mark.parametrize(
    "text", ["My first_sweep!", "2 models", "", "ü", "a" * 300, "-x-", "quick", "a." * 100]
)
def test_resource_name__is_one_that_the_operator_takes(text):
    name = resource_name(text)

    assert re.match(constants()["VALID_CLUSTER_NAME"], name)
    assert len(f"{name}-default-worker-0123456789") <= 80


def test_job__failures_that_another_try_cannot_mend_end_it():
    spec = of_kind(replace(FULL, form="job"), "Job")["spec"]
    first, second = spec["podFailurePolicy"]["rules"]

    assert first["onPodConditions"] == [{"type": "DisruptionTarget", "status": "True"}]
    assert second["onExitCodes"]["values"] == [2, 70, 130]
    assert second["onExitCodes"]["containerName"] == spec["template"]["spec"]["containers"][0]["name"]
    assert spec["template"]["spec"]["restartPolicy"] == "Never"


@pytest.mark.cluster
@pytest.mark.parametrize(("ended", "expected"), [(0, 0), (1, 1), (2, 0), (70, 0), (130, 0), (137, 137)])
def test_daskjob__exit_codes_are_mapped_so_that_only_what_may_change_is_tried_again(
    tmp_path, ended, expected
):
    process = _driven(tmp_path, f"exit {ended}")

    process.communicate()

    assert process.returncode == expected


@pytest.mark.cluster
def test_daskjob__a_pod_that_is_ended_stops_the_run_in_good_order(tmp_path):
    process = _driven(tmp_path, "trap 'echo stopping; exit 130' TERM; echo up; while :; do sleep 0.1; done")
    assert process.stdout.readline() == b"up\n"

    process.terminate()

    said, _ = process.communicate()
    assert said.splitlines() == [b"stopping", b"evalcube ended with exit code 130"]
    assert process.returncode == 0


@pytest.mark.cluster
def test_daskjob__a_pod_that_is_ended_as_it_begins_stops_the_run_too(tmp_path):
    # Told just when the run is started, the shell remembers it until there is somebody to tell.
    process = _driven(tmp_path, "exec sleep 600", first="kill -TERM $$; ")

    assert process.communicate()[0] == b"evalcube ended with exit code 143\n"


def _driven(folder, script, first=""):
    """The driver's command, with another evalcube; a log of the pod is an ordinary file here."""
    (driver,) = driver_of(SMALL)["containers"]
    program = folder / "evalcube"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    words = [word.replace("/dev/termination-log", str(folder / "log")) for word in driver["command"]]
    words[-1] = words[-1].replace("evalcube run", f"{first}evalcube run", 1)
    environment = {
        "PATH": f"{folder}:{Path(shutil.which('sleep')).parent}:{Path(sys.executable).parent}:/bin"
    }
    return subprocess.Popen(words, env=environment, stdout=subprocess.PIPE)


def test_dockerfile__runs_as_the_user_that_the_manifests_name():
    lines = (Path(manifest.__code__.co_filename).parent / "Dockerfile").read_text().splitlines()
    said = [line.split(maxsplit=1) for line in lines if line and not line.startswith(("#", " "))]

    assert [word for word, _ in said] == ["FROM", "ARG", "RUN", "USER", "WORKDIR", "ENV", "CMD"]
    users = {
        pod["securityContext"]["runAsUser"]
        for pod in (driver_of(FULL), cluster_of(FULL)["scheduler"]["spec"])
    }
    assert users == {int(dict(map(tuple, said))["USER"])}
    assert list(itertools.chain.from_iterable(re.findall(r"--uid (\d+)", line) for line in lines)) == ["1000"]
