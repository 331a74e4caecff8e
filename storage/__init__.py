"""Bytes and cubes: schema, cube, cache, ledger, lease. Knows nothing of prompts or scores."""
