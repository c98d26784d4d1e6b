"""REST, version 1: the same specification, the same selectors and the same rights as the pages."""
