"""Configs: reading a file to a valid, frozen description of a sweep, or reporting all of its problems at once."""
