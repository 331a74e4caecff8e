"""Run a sweep on a Dask cluster."""
