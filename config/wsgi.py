"""What gunicorn serves."""

import os

from django.core.wsgi import get_wsgi_application

from config.settings import require_services

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
require_services()
application = get_wsgi_application()
