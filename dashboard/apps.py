from importlib import import_module

from django.apps import AppConfig
from django.core import validators


class DashboardConfig(AppConfig):
    name = "dashboard"

    def ready(self) -> None:
        import_module("dashboard.people.backends")  # which listens to people who sign in, or fail to
        # Messages of all forms, in place of Django's "Ensure this value ...".
        validators.MinValueValidator.message = "Write %(limit_value)s or more."
        validators.MaxValueValidator.message = "Write %(limit_value)s or less."
        validators.MaxLengthValidator.message = "Write at most %(limit_value)d characters, not %(show_value)d."
