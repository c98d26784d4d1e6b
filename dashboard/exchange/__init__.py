"""Results that leave and enter: bundles to download, and the page that takes those of others."""
