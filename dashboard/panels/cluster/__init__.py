"""Contents of the pages of clusters."""
