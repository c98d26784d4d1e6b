"""WSGI application."""

import gc
import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

from config.settings import require_services

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
require_services()
application = get_wsgi_application()
get_resolver().url_patterns  # noqa: B018 - imports all pages before processes are forked
gc.collect()
gc.freeze()  # a full collection of all modules would take 0.3 s, every 20 requests
