"""The Django application of the repository."""

from django.apps import AppConfig


class ExperimentsConfig(AppConfig):
    """Models, specification, workloads and selectors."""

    name = "experiments"
    default_auto_field = "django.db.models.BigAutoField"
