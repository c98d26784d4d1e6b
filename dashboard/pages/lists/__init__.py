"""Pages of lists: what is there, filtered and sorted as the address says."""
