"""A sweep on a cluster that talks to nobody without a certificate."""

import shutil
import subprocess

import dask
import pytest
from distributed.security import Security

from evalcube.deploy.clusters import ClusterError
from evalcube.flows.run.sweep import run
from tests.flows.bare_cluster import assert_nothing_is_left, bare_cluster
from tests.flows.support import sweep_config
from tests.tiers import need

pytestmark = pytest.mark.integration


@pytest.fixture
def files(tmp_path):
    need("openssl", shutil.which("openssl"), "install it")
    names = {"ca": tmp_path / "cert.pem", "cert": tmp_path / "cert.pem", "key": tmp_path / "key.pem"}
    subprocess.run(
        [
            *(
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-days",
                "2",
                "-subj",
                "/CN=localhost",
            ),
            *("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
            *("-keyout", names["key"], "-out", names["cert"]),
        ],
        check=True,
        capture_output=True,
    )
    return {name: str(path) for name, path in names.items()}


def test_run__on_a_cluster_with_tls(tmp_path, simulator, files):
    own = {
        "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "True",
        "DASK_DISTRIBUTED__COMM__TLS__CA_FILE": files["ca"],
    }
    for role in ("SCHEDULER", "WORKER"):
        own[f"DASK_DISTRIBUTED__COMM__TLS__{role}__CERT"] = files["cert"]
        own[f"DASK_DISTRIBUTED__COMM__TLS__{role}__KEY"] = files["key"]
    security = Security(
        tls_ca_file=files["ca"],
        tls_client_cert=files["cert"],
        tls_client_key=files["key"],
        require_encryption=True,
    )
    config = sweep_config(tmp_path, simulator.base_url)

    with bare_cluster(
        tmp_path / "cluster", workers=1, env=own, security=security, scheduler_options=("--protocol", "tls")
    ) as cluster:
        assert cluster.address.startswith("tls://")
        with dask.config.set(
            {
                "distributed.comm.tls.ca-file": files["ca"],
                "distributed.comm.tls.client.cert": files["cert"],
                "distributed.comm.tls.client.key": files["key"],
            }
        ):
            summary = run({**config, "cluster": cluster.address})
        assert_nothing_is_left(cluster, security=security)
        with pytest.raises(ClusterError, match="needs certificates"):
            run({**config, "trials": 9, "cluster": {"address": cluster.address}})

    assert (summary.reason, summary.done) == ("complete", 40)
