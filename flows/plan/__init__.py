"""Plan what a sweep consists of, from a validated config or from a cube."""
