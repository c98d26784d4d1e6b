"""Read access to the repository. The most used selectors are exported here."""

from experiments.selectors.designs import varying as swept_parameters
from experiments.selectors.experiments import (
    ConfigurationRow,
    Progress,
    TrialMark,
    busy_seconds,
    configuration_rows,
    excluded_trials,
    excluded_trials_of,
    is_open,
    neighbours,
    progress_of,
    related_publications,
    repetitions_of,
    running_trials,
    seconds_per_trial,
    waiting,
)
