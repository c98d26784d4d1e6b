"""Results that leave and enter: bundles of experiments (RO-Crate), and what was measured elsewhere."""
