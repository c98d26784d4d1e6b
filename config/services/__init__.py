"""Embedded PostgreSQL and Redis of an installation without servers of its own."""
