"""A labelled Zarr cube with its records: ledger, lease, notes."""
