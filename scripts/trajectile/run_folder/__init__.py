"""What a run keeps on disk: paths, journals, leases, batches, identity."""
