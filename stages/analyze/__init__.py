"""From summed counters to scores, intervals, rankings, tables and pages."""
