"""Workers in jobs of Slurm, which are submitted, watched and replaced by the driver."""

from evalcube.deploy.clusters.slurm.cluster import Slurm
from evalcube.deploy.clusters.slurm.script import JobSettings

__all__ = ["JobSettings", "Slurm"]
