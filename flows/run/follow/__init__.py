"""Whoever follows a run: a display, a log, metrics, a file beside the cube."""
