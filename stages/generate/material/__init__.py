"""Words, stories and table formats that the tasks build their questions from; no tasks of their own."""
