"""The queue: whose turn it is, who gets it, what may stand in it."""
