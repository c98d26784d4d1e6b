"""What a query string asks, safe to give to the database."""

from django.http import HttpRequest


def asked(request: HttpRequest, name: str) -> str:
    """The value of `name`, trimmed and without NUL, which PostgreSQL refuses in text; '' when it is not there."""
    return request.GET.get(name, "").replace("\x00", "").strip()
