"""Django project: settings, URLs, Celery application, embedded services."""
