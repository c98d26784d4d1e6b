"""The samples of a trial's hosts as they are stored with it, or why there are none to show."""

from __future__ import annotations

from dashboard.panels.trial.host_samples import HostSamples, read_samples
from experiments.errors import NotPlain, StoreAway, Tampered
from experiments.models import Artifact, Trial


class NoSamples(Exception):
    """Why there is nothing to show, for the reader."""


def samples_of(trial: Trial) -> HostSamples:
    """Return the samples of a trial's hosts. Raise NoSamples."""
    artifact = trial.artifacts.filter(kind=Artifact.Kind.SAMPLES).first()
    if artifact is None:
        raise NoSamples("No samples of the hosts were stored with this trial.")
    if artifact.removed_at is not None:
        raise NoSamples(f"{artifact.name} was removed from the store; nothing is left to draw.")
    try:
        with artifact.intact() as file:
            samples = read_samples(file)
    except (Tampered, NotPlain, StoreAway) as error:
        raise NoSamples(str(error)) from None
    except OSError:
        raise NoSamples(f"{artifact.name} is no longer in its place on disk; nothing is left to draw.") from None
    except ValueError as error:
        raise NoSamples(f"{artifact.name} cannot be read: {error}.") from None
    if not samples.hosts:
        raise NoSamples("No second sample was taken, so there are no rates.")
    return samples
