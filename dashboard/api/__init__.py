"""REST, version 1, with the specification, selectors and permissions of the pages."""
