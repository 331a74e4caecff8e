"""Slurm's own commands and scripts, for sweeps that are handed to it whole."""

from evalcube.deploy.clusters.slurm.script import JobSettings

__all__ = ["JobSettings"]
