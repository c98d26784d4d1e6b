"""What differs from one kind of cluster to the next, and what people state of a cluster. Pure."""
