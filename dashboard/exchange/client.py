"""The Python client as a wheel, which pip installs from the address of a site."""

from __future__ import annotations

import base64
import hashlib
import io
import tomllib
import zipfile
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

_FOLDER: Final = settings.BASE_DIR / "clients" / "python"
_OLDEST: Final = (1980, 1, 1, 0, 0, 0)
"""Time of all files: equal sources give equal wheels."""
_WHEEL: Final = "Wheel-Version: 1.0\nGenerator: rankwire\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


@login_not_required
@require_safe
def wheel(request: HttpRequest, name: str) -> HttpResponse:
    """Download the wheel, without signing in.

    pip has no session, and the sources are public.
    """
    if name != wheel_name():
        raise Http404(f"the wheel is {wheel_name()}")
    response = HttpResponse(wheel_bytes(), content_type="application/octet-stream")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def wheel_name() -> str:
    """Return the name of the wheel's file, by which pip recognises its version."""
    return f"{_stem(_project())}-py3-none-any.whl"


def requirement(address: str, extra: str = "") -> str:
    """Return what ``pip install`` takes; ``address`` is that of the site."""
    return f"rankwire-client{f'[{extra}]' if extra else ''} @ {address}{reverse('client-wheel', args=[wheel_name()])}"


@cache
def wheel_bytes() -> bytes:
    """Return the wheel of ``clients/python``."""
    project = _project()
    source = _FOLDER / "src"
    files = {
        path.relative_to(source).as_posix(): path.read_bytes()
        for path in sorted(source.rglob("*"))
        if path.suffix == ".py" or path.name == "py.typed"
    }
    information = f"{_stem(project)}.dist-info"
    files[f"{information}/METADATA"] = _metadata(project).encode()
    files[f"{information}/WHEEL"] = _WHEEL.encode()
    commands = "".join(f"{name} = {function}\n" for name, function in project["scripts"].items())
    files[f"{information}/entry_points.txt"] = f"[console_scripts]\n{commands}".encode()
    record = f"{information}/RECORD"
    rows = [f"{name},sha256={_digest(content)},{len(content)}\n" for name, content in files.items()]
    files[record] = "".join([*rows, f"{record},,\n"]).encode()
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, _OLDEST)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, content)
    return stream.getvalue()


@cache
def _project() -> Mapping[str, Any]:
    project: dict[str, Any] = tomllib.loads((_FOLDER / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return project


def _stem(project: Mapping[str, Any]) -> str:
    return f"{project['name'].replace('-', '_')}-{project['version']}"


def _metadata(project: Mapping[str, Any]) -> str:
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"License: {project['license']}",
        f"Requires-Python: {project['requires-python']}",
        *(f"Requires-Dist: {name}" for name in project["dependencies"]),
    ]
    for extra, names in project["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}", *(f'Requires-Dist: {name}; extra == "{extra}"' for name in names)]
    return "\n".join(lines) + "\n"


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
