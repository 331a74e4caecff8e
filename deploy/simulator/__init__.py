"""The project's own simulated model: an HTTP server that answers with a known ability."""
