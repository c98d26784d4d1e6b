"""Errors of replays."""


class NotReplayable(ValueError):
    """A trial cannot be replayed; the message is the reason, as a sentence."""
