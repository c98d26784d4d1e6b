from importlib import import_module

from django.apps import AppConfig


class ProjectConfig(AppConfig):
    name = "config"  # has management commands

    def ready(self) -> None:
        import_module("config.celery")  # each process registers `shared_task` with this application
