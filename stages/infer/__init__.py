"""A request -> a cached record of the reply, whatever the endpoint does."""
