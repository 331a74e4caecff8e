"""Generators and graders of others: run in a process of their own, which is bounded and cannot reach out."""
