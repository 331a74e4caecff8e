"""Count trials: counters of every cell, which add up over whatever is grouped."""
