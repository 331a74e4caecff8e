"""Look after what is there: results and caches are forgotten, graded again, shrunk and filled."""
