"""``/api/v1/trials/``: trials and the contents of their artifacts."""
