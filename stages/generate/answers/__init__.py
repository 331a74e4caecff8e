"""Readers that find the final answer in a model's text, one module for each kind of answer."""
