"""Contents of pages, and their cost while trials run and for large experiments."""
