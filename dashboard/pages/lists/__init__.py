"""Pages of lists, filtered and sorted by the query string."""
