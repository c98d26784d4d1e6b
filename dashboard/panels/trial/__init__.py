"""Contents of the page of a trial."""
