"""Sweeps that are handed to Slurm whole: one job per model, in which driver, workers and model server run together."""
