"""Several cubes as one, on disk or in memory: joined by the identity of evaluations, points and trials, never by place.

==========  ===========================================================================
union       what several sweeps measure together, from their descriptions
inputs      a cube that is merged, of which what its ledger vouches for is read
layers      what each cube knows of a part of the union
overlay     layers laid over one another, and where they contradict
conflicts   contradictions, counted by model and task
shared      the arrays that all models of a cube share, joined
joined      several cubes as one sweep: its plan, targets and flags
regions     the regions of one model, merged one after another
provenance  where the trials of a merged cube come from
difference  how two cubes differ
dataset     several cubes as one labelled dataset in memory
write       the merged cube on disk
==========  ===========================================================================
"""
