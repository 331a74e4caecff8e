"""The manifest that the page on clusters shows, by the schemas of Dask's operator and of Kubernetes."""

from pathlib import Path

import yaml

from evalcube.flows.config.load import parse_config
from tests.deploy.kubernetes.schemas import problems

DOCUMENTS = list(yaml.safe_load_all(Path("deploy/kubernetes/daskjob.yaml").read_text("utf-8")))


def test_daskjob__is_what_the_operator_accepts():
    assert [problems(document) for document in DOCUMENTS] == [[], []]


def test_daskjob__leads_the_service_to_its_own_scheduler():
    config, job = DOCUMENTS
    cluster = job["spec"]["cluster"]["spec"]

    name = job["metadata"]["name"]
    assert cluster["scheduler"]["service"]["selector"]["dask.org/cluster-name"] == name
    assert f"tcp://{name}-scheduler:8786" in config["data"]["cluster.yaml"]
    sweep = parse_config(config["data"]["sweep.yaml"])
    assert sweep.cube.startswith("/results/")
