"""Tasks in a config: their second readers."""

import pytest

from evalcube.flows.config.manifold import ReaderConfig
from evalcube.flows.errors import ConfigError


def test_reader_config__takes_expressions_that_compile_and_refuses_others():
    assert ReaderConfig(pattern=r"(\d+)$", ignore=[r"\s"]).ignore == (r"\s",)

    with pytest.raises(ConfigError, match=r"pattern.*regular expression"):
        ReaderConfig(pattern="(")
    with pytest.raises(ConfigError, match=r"ignore.*regular expression"):
        ReaderConfig(pattern="x", ignore=[r"\s", "("])
