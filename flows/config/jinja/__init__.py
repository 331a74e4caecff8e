"""Jinja texts of strangers, rendered in bounded time and memory."""
