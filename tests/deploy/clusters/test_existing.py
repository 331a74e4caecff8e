"""Schedulers that somebody else runs."""

import pytest

from evalcube.deploy.clusters import ClusterError, ExistingScheduler, dask_cluster

pytestmark = pytest.mark.cluster


def test_connect__without_certificates_says_what_it_needs():
    with (
        pytest.raises(ClusterError, match="needs certificates: name them in a file of Dask's own") as caught,
        ExistingScheduler("tls://127.0.0.1:9").connect(),
    ):
        pass

    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("address", ["http://127.0.0.1:8786", "nowhere"])
def test_connect__an_address_of_another_kind_is_named_as_such(address):
    with pytest.raises(ClusterError, match=r"is no address of a scheduler\. Write it like tcp://host:8786"):
        ExistingScheduler(address, timeout=0.5).connect().__enter__()


def test_words__of_a_long_message_are_its_end():
    said = dask_cluster._words(
        RuntimeError("stdout:\nwell\nstderr:\n" + "noise\n" * 1000 + "error: invalid\tpartition\n")
    )

    assert said.endswith("noise; error: invalid?partition")
    assert len(said) == dask_cluster._LONGEST
