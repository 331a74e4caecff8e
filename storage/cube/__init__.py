"""A labelled Zarr cube, and its records: ledger, lease, notes.

=============  ========================================================================================================
cube           a cube at an address: where everybody begins
schema         names, dims, dtypes, fills and units of its arrays
layout         what a new cube consists of
group          its zarr arrays, read and written chunk by chunk
metadata       the object that commits its shape
growing        how it becomes larger
shared_arrays  the arrays beside the trials: counters, labels, plans, repeated prompts
regions        the unit of writing, and its digest
ledger         receipts of the regions that were written
integrity      whether regions are what their receipts say; a lazy dataset that says what is damaged
lease          the right to be the only driver of a cube
holder         who has that right, and whether that process still does
batch_notes    batches that providers work on
space          what all of these ask of the place that stores them
address        which such place an address means
directory      such a place on a disk
=============  ========================================================================================================
"""
