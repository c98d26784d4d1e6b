"""Why a trial cannot be replayed."""


class NotReplayable(ValueError):
    """The reason, as a sentence."""
