"""Configs: reading a file to a valid, frozen description of a sweep, or reporting all of its problems at once."""

from flows.config.load import as_config, from_mapping, load_config, parse_config
from flows.config.models import SweepConfig

__all__ = ["SweepConfig", "as_config", "from_mapping", "load_config", "parse_config"]
