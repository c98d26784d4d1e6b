"""The repository: what was asked and what was found."""
