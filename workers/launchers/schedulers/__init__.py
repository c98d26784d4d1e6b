"""What the kinds of cluster share whose hosts a scheduler allots: one queue, one launcher, and a login where jobs take no steps."""
