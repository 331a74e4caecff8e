"""The project's own simulated model: an HTTP server whose answers have a known ability."""
