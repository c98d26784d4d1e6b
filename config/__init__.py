"""Django project: settings, URLs, Celery application, embedded services."""

# Imported with Django, so that each process registers `shared_task` with this application.
from config.celery import app as celery_app

__all__ = ["celery_app"]
