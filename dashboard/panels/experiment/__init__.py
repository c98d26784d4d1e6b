"""Contents of the page of an experiment, and its rows in lists."""
