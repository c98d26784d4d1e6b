"""The embedded services: a private PostgreSQL and Redis under var/, started by the scripts and gone with them."""
