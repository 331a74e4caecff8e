"""The response cache: directories, object stores and Redis behind one contract."""
