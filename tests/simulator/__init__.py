"""The simulated model with what only tests need of a server: faults, limits, keys, batches, streams and other APIs."""
