"""Wiring only: a sweep from its config to its report, and the command line."""
