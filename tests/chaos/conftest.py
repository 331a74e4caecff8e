"""The fixtures of sweeps."""

from tests.flows.conftest import _served, simulator

__all__ = ["_served", "simulator"]
