"""The section `cluster` of kind ssh: hosts as people write them, and what a run makes of them."""

import pytest

from evalcube.deploy.clusters.ssh import Host, Login
from evalcube.flows.config.load import parse_config
from evalcube.flows.errors import ConfigError
from evalcube.flows.run.chosen_cluster import chosen_cluster

REST = """
models: [{name: m, endpoint: "http://127.0.0.1:9/v1", key_env: MY_KEY}]
tasks: {boolean: {params: {length: 4}}}
"""


def settings(text):
    return parse_config(f"cluster: {{kind: ssh, {text}}}\n{REST}", "sweep.yaml")


def test_cluster__hosts_are_names_logins_or_mappings():
    config = settings(
        "hosts: [node1, ada@node2:2222, {host: node3, python: /opt/py, workers: 4}], python: py, workers: 2, "
        "known_hosts: /etc/known, environment: [HTTPS_PROXY], minimum: 3, patience: 10m"
    )

    cluster = chosen_cluster(config)

    assert cluster.hosts == (
        Host("node1", python="py", workers=2),
        Host("node2", "ada", 2222, "py", 2),
        Host("node3", python="/opt/py", workers=4),
    )
    assert cluster.login == Login("/etc/known")
    assert cluster.login.check_host_keys
    assert (cluster.variables, cluster.minimum, cluster.patience) == (("MY_KEY", "HTTPS_PROXY"), 3, 600)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hosts: []", "hosts"),
        ("hosts: ['-oProxyCommand=x']", "must be a host such as node1"),
        ("hosts: ['node1; reboot']", "must be a host such as node1"),
        ("hosts: [{user: ada}]", "hosts[0].host"),
        ("hosts: [node1], check_host_keys: never", "check_host_keys"),
        ("hosts: [node1], environment: [sk-1234567890]", "environment"),
    ],
)
def test_cluster__hosts_that_make_no_sense_are_refused(text, message):
    with pytest.raises(ConfigError) as refusal:
        settings(text)

    assert message in str(refusal.value)
    assert "1234567890" not in str(refusal.value)
