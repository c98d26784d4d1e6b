"""A web process has no kernels of the decoder, which take 55 MB."""

from __future__ import annotations

import os
import subprocess
import sys

from config.services.lease import ROOT

LOADED = """
import sys

import django

django.setup()
from django.urls import reverse

reverse("trial", args=[0])
print([name for name in ("numba", "llvmlite") if name in sys.modules])
"""


def test_the_addresses_of_all_pages_load_none_of_them() -> None:
    settings = {"DJANGO_SETTINGS_MODULE": "config.settings", "RANKWIRE_SECRET_KEY": "x" * 50}
    argv = [sys.executable, "-c", LOADED]
    reported = subprocess.run(
        argv, cwd=ROOT, env={**os.environ, **settings}, capture_output=True, text=True, check=True
    )
    assert reported.stdout.strip() == "[]"
