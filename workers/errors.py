"""Expected failures of a running trial.

Exception
|-- TrialFailed            expected; str(error) is a sentence for the reader; the trial is FAILED
|   |-- ClusterUnavailable the cluster cannot be made or does not answer
|   |   `-- HostsLost      ... in the middle of a trial: it may run again elsewhere
|   |       `-- AllocationEnded ... because a scheduler ended the job that many trials shared: it runs again, uncounted
|   |-- LaunchFailed       the program could not be started
|   `-- NotDelivered       the store of files did not take what was measured
|-- CaptureUnavailable     no packets can be recorded; the trial runs on, its network metrics say why they are absent
`-- ProfileUnavailable     time inside MPI cannot be counted; the trial runs on, its metrics of MPI say why they are absent
"""


class TrialFailed(Exception):
    """An expected failure of one trial; the message is a sentence for the reader."""


class ClusterUnavailable(TrialFailed):
    """The cluster cannot be made, or is gone."""


class HostsLost(ClusterUnavailable):
    """The hosts were lost while the trial ran on them."""


class AllocationEnded(HostsLost):
    """The scheduler ended the job of many trials' hosts; not the trial's fault."""


class LaunchFailed(TrialFailed):
    """The program of the trial could not be started."""


class NotDelivered(TrialFailed):
    """The artifact store did not accept a trial's files within the time limit."""


class CaptureUnavailable(Exception):
    """Packets cannot be recorded here; the message explains absent network metrics."""


class ProfileUnavailable(Exception):
    """Time inside MPI cannot be counted here; the message explains absent MPI metrics."""
