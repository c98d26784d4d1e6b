"""The repository's tables. Import models from here."""

from experiments.models.artifact import Artifact
from experiments.models.background import BackgroundTask
from experiments.models.cluster import Cluster, Lease
from experiments.models.cluster_check import ClusterTest
from experiments.models.configuration import Configuration
from experiments.models.deleted import Deleted, DeletedRows
from experiments.models.environment import Environment
from experiments.models.experiment import Experiment
from experiments.models.heartbeat import Heartbeat, LastSeen
from experiments.models.installation import Installation
from experiments.models.measurement import Measurement, TrialValues, ValueNames
from experiments.models.network import Network
from experiments.models.people.access import ApiToken, IdempotencyKey
from experiments.models.people.event import Event
from experiments.models.people.invitation import Invitation
from experiments.models.people.notifications import Delivery, NoticeChoices, Webhook
from experiments.models.people.preferences import Preferences
from experiments.models.people.project import Membership, Project
from experiments.models.people.share_link import ShareLink
from experiments.models.people.view import ExpectedChange, SavedView
from experiments.models.prediction import Prediction
from experiments.models.program import Program
from experiments.models.report import Report, ReportVersion
from experiments.models.round import Round
from experiments.models.states import (
    ACTIVE,
    BLOCKING,
    DISTURBANCES,
    FAILED,
    METRIC_SOURCES,
    UNFINISHED,
    Hold,
    Kind,
    Priority,
    State,
    Status,
    Tone,
)
from experiments.models.summary import DesignSize, HistoryPart, Summary
from experiments.models.trial import Trial, TrialResult
from experiments.models.usage import Usage
from experiments.models.version import ExperimentVersion
