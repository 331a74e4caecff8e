"""The contract between `infer` and `process`: what a stored reply looks like, and how trials end."""
