"""What can go wrong with backups.

KeepingError            a sentence for the person at the terminal; nothing was changed
└── ChangedBackup       a backup is not what was written; the sentence names the file
"""


class KeepingError(Exception):
    """A backup cannot be made or put back; the text is one line."""


class ChangedBackup(KeepingError):
    """A file of a backup was changed, is missing, or was added."""
