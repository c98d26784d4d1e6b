"""Authentication, parsing, errors, paging and description of all REST requests."""
