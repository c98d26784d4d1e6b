"""Export and import of results: bundles, descriptions, reports of other tools."""
