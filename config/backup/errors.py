"""Errors of backups: one line for the user of a command; nothing was changed.

BackupError
└── ChangedBackup       names the file that differs from the backup as it was written
"""


class BackupError(Exception):
    """A backup cannot be made or restored."""


class ChangedBackup(BackupError):
    """A file of a backup was changed, is missing, or was added."""
