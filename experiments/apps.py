"""The Django application of the repository."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class ExperimentsConfig(AppConfig):
    """Models, specification, workloads and selectors."""

    name = "experiments"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from experiments import registered, workloads
        from experiments.traffic import define_in_database

        workloads.add_source(registered.programs)
        post_migrate.connect(define_in_database, sender=self)
