"""One made-up cube for all tests of statistics' commands, which only read it."""

import pytest

from tests.flows.cli.made_up import make_cube


@pytest.fixture(scope="session")
def cube(tmp_path_factory):
    return make_cube(tmp_path_factory.mktemp("statistics"))
