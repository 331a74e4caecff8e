"""The section `cluster` of a config, and the clusters that a user has given names to."""

import pytest

from evalcube.flows.config.cluster import LocalSection, SchedulerSection
from evalcube.flows.config.load import parse_config
from evalcube.flows.config.sites import named_cluster
from evalcube.flows.errors import ConfigError, SweepError

REST = """
models: [{name: m, endpoint: "sim:"}]
tasks: {boolean: {params: {length: 4}}}
"""


def cluster(text):
    return parse_config(f"cluster: {text}\n{REST}", "sweep.yaml").cluster


def test_cluster__is_a_kind_or_a_name():
    found = cluster('{kind: scheduler, address: "tcp://host:8786", minimum: 4, patience: 20m}')

    assert found == SchedulerSection(kind="scheduler", address="tcp://host:8786", minimum=4, patience="20m")
    assert found.patience == 1200
    assert cluster("site") == "site"
    assert parse_config(REST).cluster is None


@pytest.mark.parametrize(
    ("text", "value"),
    [("90s", 90), ("1.5h", 5400), ("01:00:00", 3600), ("1-12:00:00", 129_600), ("2 d", 172_800)],
)
def test_seconds__are_read_from_what_people_and_slurm_write(text, value):
    assert cluster(f'{{kind: scheduler, address: a, patience: "{text}"}}').patience == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("3", "sweep.yaml:1: cluster: must be the name of a cluster or a mapping with its kind, got 3"),
        ("{jobs: 2}", "cluster.kind: is missing. Write kind: "),
        ("{kind: pbs}", "cluster.kind: must be one of "),
        ("{kind: [x]}", "cluster.kind: must be one of "),
        ("{kind: local, workers: 0}", "cluster.workers: must be at least 1, got 0"),
        ("{kind: scheduler}", "cluster.address: is missing"),
        ("{kind: scheduler, address: a, workers: []}", "Write [node1, node2] or {resource: eval}"),
        ("{kind: scheduler, address: a, workers: 4}", "Write [node1, node2] or {resource: eval}"),
        ("{kind: scheduler, address: a, workers: {resources: x}}", "Did you mean 'resource'"),
        ("{kind: scheduler, address: a, priority: 5000}", "priority"),
        ("{kind: scheduler, adress: x}", "cluster.adress: unknown field 'adress'. Did you mean 'address'"),
        (
            "{kind: scheduler, address: a, patience: 20}",
            "cluster.patience: must be a time from 1s to 366d, got 20",
        ),
        (
            "{kind: ssh, hosts: [a], environment: [A=1]}",
            "cluster.environment[0]: must be the name of an environment variable. Give its NAME alone",
        ),
        ("{kind: scheduler, address: a, patience: 20 weeks}", "Write it as in 90s, 20m, 2h, 1d or 01:30:00"),
    ],
)
def test_cluster__mistakes_are_named_with_their_place(text, message):
    with pytest.raises(ConfigError) as caught:
        cluster(text)

    assert message in str(caught.value)
    assert len(caught.value.problems) == 1


def test_named_cluster__is_found_in_the_users_file_or_in_one_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "evalcube").mkdir()
    (tmp_path / "evalcube" / "clusters.yaml").write_text(
        "site: {kind: local, workers: 3}\nother:\n  kind: local\n"
    )
    (tmp_path / "one.yaml").write_text("kind: local\nworkers: 5\n")

    assert named_cluster("site") == LocalSection(kind="local", workers=3)
    assert named_cluster(str(tmp_path / "one.yaml")).workers == 5
    assert named_cluster("local") == LocalSection(kind="local")
    with pytest.raises(
        SweepError, match=r"there is no cluster 'sitr' in .*clusters.yaml. Did you mean 'site'"
    ):
        named_cluster("sitr")
    with pytest.raises(SweepError, match=r"Did you mean 'site'\? Or give the path"):
        named_cluster("sitr")


@pytest.mark.parametrize(
    ("name", "shown"),
    [("a\nb", "there is no cluster 'a\\nb' in "), ("./a\nb.yaml", "'a\\nb.yaml': No such file")],
)
def test_named_cluster__is_quoted_in_one_line(tmp_path, monkeypatch, name, shown):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))

    with pytest.raises(SweepError) as found:
        named_cluster(name)

    assert shown in str(found.value)
    assert "\n" not in str(found.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "site: {kind: local, workers: many}",
            "clusters.yaml:1: site.workers: must be a whole number, got 'many'",
        ),
        ("a: 1\nsite:\n  kind: pbs", "clusters.yaml:3: site.kind: must be one of "),
        ("site: other", "clusters.yaml:1: site: must be a mapping"),
        ("site: [", "clusters.yaml:1: "),
    ],
)
def test_named_cluster__mistakes_are_named_with_their_line(tmp_path, monkeypatch, text, message):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "evalcube").mkdir()
    (tmp_path / "evalcube" / "clusters.yaml").write_text(text)

    with pytest.raises(ConfigError) as caught:
        named_cluster("site")

    assert message in str(caught.value)


def test_named_cluster__says_where_names_are_kept_if_there_are_none(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))

    with pytest.raises(SweepError, match="There are none yet"):
        named_cluster("site")
    with pytest.raises(SweepError, match="No such file"):
        named_cluster("./site.yaml")


def test_named_cluster__shows_no_whole_file_that_is_none(tmp_path):
    file = tmp_path / "keys.yaml"
    file.write_text("nothing secret\n" + "\n".join(f"  words of line {number}" for number in range(100)))

    with pytest.raises(ConfigError) as caught:
        named_cluster(str(file))

    assert "must be a mapping, got 'nothing secret" in str(caught.value)
    assert "line 99" not in str(caught.value)
