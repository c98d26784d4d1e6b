"""The Django application of the repository."""

import functools

from django.apps import AppConfig
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate

from experiments import workloads
from experiments.workloads import WorkloadDefinition, plugins


@functools.cache
def _brought() -> dict[str, WorkloadDefinition]:
    """Return the workloads of Python modules, loaded at first use."""
    try:
        return plugins.load(settings.WORKLOADS_DIRECTORY, workloads.built_in())
    except plugins.UnusableWorkload as error:
        raise ImproperlyConfigured(str(error)) from None


class ExperimentsConfig(AppConfig):
    name = "experiments"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from experiments import registered
        from experiments.common import outage
        from experiments.traffic import define_in_database

        workloads.add_source(_brought)
        workloads.add_source(registered.programs)
        connection_created.connect(outage.database_connected)
        connection_created.connect(outage.release_locks_of_lost_machines)
        post_migrate.connect(define_in_database, sender=self)
