"""The trials of cubes as a table: one row for each, with all that is known of it."""
