#!/usr/bin/env python
"""Command line of Django; `script/manage` also starts the embedded services."""

import os
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.management import execute_from_command_line
from django.db.utils import OperationalError


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        sys.exit(f"rankwire: {error}")
    except OperationalError as error:
        from django.conf import settings  # once they are known to be readable

        # One line is enough: the rest of libpq's text repeats it per address that it tried.
        reason, own = str(error).splitlines()[0], bool(settings.ENVIRONMENT.DATABASE_URL)
        advice = "DATABASE_URL and RANKWIRE_DATABASE_PASSWORD say where it is" if own else "script/manage starts it"
        sys.exit(f"rankwire: the database does not answer ({reason}); {advice}")


if __name__ == "__main__":
    main()
