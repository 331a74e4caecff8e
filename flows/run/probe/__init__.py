"""Finds out what an endpoint really does, with a few requests through the client of sweeps; nothing is kept of them."""
