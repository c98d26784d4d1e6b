"""``/api/v1/trials/``: the rows, and below each what its files hold."""
