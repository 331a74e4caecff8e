"""Workers in jobs of Slurm, which are submitted, watched and replaced by the driver."""

from deploy.clusters.slurm.cluster import Slurm
from deploy.clusters.slurm.script import JobSettings

__all__ = ["JobSettings", "Slurm"]
