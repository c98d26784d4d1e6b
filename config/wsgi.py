"""What gunicorn serves."""

import gc
import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

from config.settings import require_services

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
require_services()
application = get_wsgi_application()
get_resolver().url_patterns  # noqa: B018 - loads every page now, once, or each process would at its first request
gc.collect()
gc.freeze()  # else every full collection looks through all that was loaded: a third of a second, every twentieth request
