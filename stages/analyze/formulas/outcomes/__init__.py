"""Pass@k and its family on outcome matrices (questions × samples); for cubes see `stages.analyze.labelled.outcomes`."""
