"""Help: the guides of docs/ as searchable pages."""
