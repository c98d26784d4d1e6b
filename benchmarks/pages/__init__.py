"""Cost of pages while trials run and of large experiments."""
