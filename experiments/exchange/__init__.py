"""Export and import of results: bundles (RO-Crate) and external results."""
