"""What the page of an experiment shows: its results, its diagnosis, what is not counted, and its rows in lists."""
