from importlib import import_module

from django.apps import AppConfig


class DashboardConfig(AppConfig):
    name = "dashboard"

    def ready(self) -> None:
        for listener in ("backends", "groups", "lockouts"):  # to people who sign in, or fail to
            import_module(f"dashboard.people.{listener}")
