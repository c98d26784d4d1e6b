"""What holds for requests of any page: what their addresses ask for, how many at once, sent twice and done once."""
