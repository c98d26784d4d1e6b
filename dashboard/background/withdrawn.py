"""What ends a task in the background that nobody waits for."""


class Withdrawn(Exception):
    """The task was cancelled, or another worker has taken it on."""
