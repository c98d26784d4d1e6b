from importlib import import_module

from django.apps import AppConfig


class DashboardConfig(AppConfig):
    name = "dashboard"

    def ready(self) -> None:
        import_module("dashboard.people.backends")  # which listens to people who sign in, or fail to
