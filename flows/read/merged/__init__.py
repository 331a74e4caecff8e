"""Several cubes as one, on disk or in memory: joined by the identity of evaluations, points and trials, never by place.

==========  ===========================================================================
union       what several sweeps measure together, from their descriptions
inputs      a cube that is merged, of which what its ledger vouches for is read
layers      what each cube knows of a part of the union, laid over one another
joined      several cubes as one sweep: its plan, targets and flags
dataset     several cubes as one dataset, region by region, and where they contradict
provenance  where the trials of a merged cube come from
==========  ===========================================================================
"""
