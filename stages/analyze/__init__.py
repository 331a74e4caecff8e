"""Summed counters -> scores, intervals, rankings, tables and pages."""
