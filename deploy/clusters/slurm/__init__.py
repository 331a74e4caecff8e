"""Slurm's own commands and scripts, for sweeps that are handed to it whole."""
