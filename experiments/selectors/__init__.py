"""Read access to the repository. The most used selectors are exported here."""

from experiments.selectors.designs import varying as swept_parameters
from experiments.selectors.experiments import (
    ConfigurationRow,
    Progress,
    TrialMark,
    apart,
    apart_of,
    configuration_rows,
    neighbours,
    progress_of,
    published_like,
    repetitions_of,
    running_trials,
    waiting,
)
