"""Read and analyse cubes; nothing here asks an endpoint."""
