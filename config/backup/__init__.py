"""Backup and restore of an installation: database, artifacts and settings."""
