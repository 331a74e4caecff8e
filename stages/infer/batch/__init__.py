"""Requests that travel through batch APIs."""
