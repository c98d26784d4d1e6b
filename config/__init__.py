"""The Django project: settings, addresses, the Celery application and the embedded services."""

# Loaded with Django, so that tasks declared with `shared_task` find their application in every process.
from config.celery import app as celery_app

__all__ = ["celery_app"]
