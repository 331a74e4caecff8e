"""Cubes as commits in an Icechunk repository: each is a state of one cube, named by tags and reached by branches.

A repository holds arrays only, each object under a key that Zarr gives it; a cube's records (its ledger, plan and
notes) are arrays of bytes in it. Chunks are kept as they are, so that a commit and its cube are equal to the byte.
Nobody works in a repository: whoever measures further does so in a cube of his own, and commits that.
"""
