"""Readers that find the final answer in a model's text."""
