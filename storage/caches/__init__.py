"""The places where a response cache can be: a directory, an object store, a Redis server. One contract for all."""
