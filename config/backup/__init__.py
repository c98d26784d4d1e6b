"""Backups of an installation, and putting them back: the database, the files of trials, the settings."""
