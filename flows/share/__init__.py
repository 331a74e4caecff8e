"""Give cubes and logs to others, and take theirs: merged, compared, published, pulled, imported, exported."""
