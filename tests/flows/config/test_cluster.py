"""The section `cluster` of a config, and files that hold one."""

import pytest

from evalcube.flows.config.cluster import SlurmSection
from evalcube.flows.config.load import cluster_section, from_mapping, parse_config
from evalcube.flows.errors import ConfigError
from tests.cases import with_cases

REST = """
models: [{name: m, endpoint: "sim:"}]
tasks: {boolean: {params: {length: 4}}}
"""


def cluster(text):
    return parse_config(f"cluster: {text}\n{REST}", "sweep.yaml").cluster


def test_cluster__is_this_machine_an_address_or_a_class_with_its_options():
    made = cluster(
        "{class: dask_jobqueue.SLURMCluster, options: {cores: 2, queue: gpu}, scale: 4, tls: false}"
    )

    assert (made.made_of, made.options, made.scale, made.tls) == (
        "dask_jobqueue.SLURMCluster",
        {"cores": 2, "queue": "gpu"},
        4,
        False,
    )
    assert cluster("local").made_of == "local"
    assert cluster("tcp://host:8786") == cluster("{address: 'tcp://host:8786'}")
    assert cluster("{address: 'tcp://host:8786', patience: 20m}").patience == 1200
    assert parse_config(REST).cluster is None


@with_cases(
    ("text", "value"),
    [
        *(("90s", 90), ("1.5h", 5400), ("01:00:00", 3600), ("1-12:00:00", 129_600), ("2 d", 172_800)),
        *(
            ("1s", 1),
            ("366d", 31_622_400),
            ("3m", 180),
            ("3 min", 180),
            ("02:03:04", 7384),
            ("1-02:03:04", 93_784),
        ),
    ],
)
def test_seconds__are_read_from_what_people_and_slurm_write(text, value):
    assert cluster(f'{{address: a, patience: "{text}"}}').patience == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("3", "sweep.yaml:1: cluster: must be local, the address of a scheduler, or a mapping, got 3"),
        ("site", "must be local, the address of a scheduler, or a mapping, got 'site'"),
        ("{minimum: 2}", "cluster: must have one of address, class and slurm"),
        ("{address: a, class: b.C}", "cluster: must have one of address, class and slurm"),
        ("{class: local, scale: 0}", "cluster.scale: must be at least 1, got 0"),
        ("{address: a, workers: []}", "Write [node1, node2] or {resource: eval}"),
        ("{address: a, workers: {resources: x}}", "Did you mean 'resource'"),
        ("{adress: x, class: b.C}", "cluster.adress: unknown field 'adress'. Did you mean 'address'"),
        ("{address: a, patience: 20}", "cluster.patience: must be a time from 1s to 366d, got 20"),
        (
            f"{{address: a, patience: {'9' * 400}-00:00:00}}",
            "cluster.patience: must be a time from 1s to 366d",
        ),
        ('{slurm: {options: ["--mem=4G\\n#x"]}}', "cluster.slurm.options[0]: must be one line of text"),
    ],
)
def test_cluster__mistakes_are_named_with_their_place(text, message):
    with pytest.raises(ConfigError) as caught:
        cluster(text)

    assert message in str(caught.value)
    assert len(caught.value.problems) == 1


def settings():
    return from_mapping(
        {"models": [{"name": "m", "endpoint": "sim:"}], "tasks": {"boolean": {"params": {"length": 4}}}}
    )


def test_cluster_section__is_that_of_a_file_which_is_given(tmp_path):
    file = tmp_path / "one.yaml"
    file.write_text("class: local\nscale: 5\n")

    assert cluster_section(settings(), file).scale == 5
    assert cluster_section(settings(), "tcp://a:1").address == "tcp://a:1"
    assert isinstance(cluster_section(settings(), {"slurm": {"options": ["--mem=4G"]}}), SlurmSection)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("class: local\nscale: many", "one.yaml:2: scale: must be a whole number, got 'many'"),
        ("class: [", "one.yaml:1: "),
        ("nothing secret\n" + "  line\n" * 100, "must be local, the address of a scheduler, or a mapping"),
    ],
)
def test_cluster_section__mistakes_are_named_with_their_line(tmp_path, text, message):
    (tmp_path / "one.yaml").write_text(text)

    with pytest.raises(ConfigError) as caught:
        cluster_section(settings(), tmp_path / "one.yaml")

    assert message in str(caught.value)
    assert len(str(caught.value)) < 600


def test_cluster_section__a_file_that_is_not_there_is_named_in_one_line(tmp_path):
    with pytest.raises(ConfigError, match="no such file") as found:
        cluster_section(settings(), f"{tmp_path}/a\nb.yaml")

    assert "\n" not in str(found.value)
