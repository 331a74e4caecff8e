"""Sweeps that are handed over whole: to a running Dask cluster, or to Slurm as one job."""
