"""What can go wrong while a trial runs, apart from surprises.

Exception
|-- TrialFailed            expected; str(error) is a sentence for the reader; the trial is FAILED
|   |-- ClusterUnavailable the cluster cannot be made or does not answer
|   `-- LaunchFailed       the program could not be started
`-- CaptureUnavailable     no packets can be recorded; the trial runs on, its network metrics say why they are absent
"""


class TrialFailed(Exception):
    """An expected failure of one trial; the message is a sentence for the reader."""


class ClusterUnavailable(TrialFailed):
    """The cluster cannot be made, or is gone."""


class LaunchFailed(TrialFailed):
    """The program of the trial could not be started."""


class CaptureUnavailable(Exception):
    """Packets cannot be recorded here; the message is the reason that the network metrics carry."""
