"""Trial arrays -> counters that add."""
