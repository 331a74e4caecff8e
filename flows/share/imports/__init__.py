"""Reads what other tools have measured, and writes it as a cube; nothing is ever asked."""
