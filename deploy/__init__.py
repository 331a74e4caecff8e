"""Where a sweep runs: Dask clusters, and the model servers that evalcube starts itself."""
