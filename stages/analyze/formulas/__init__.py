"""Formulas on arrays of counters and outcomes; numpy and scipy only."""
