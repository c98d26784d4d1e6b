"""Code without Django: quantities, recorded facts, storable data, plain files."""
