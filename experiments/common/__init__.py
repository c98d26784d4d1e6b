"""What many need and nothing of Django does: quantities with units, recorded facts, storable data, plain files."""
