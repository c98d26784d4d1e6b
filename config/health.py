"""Is this installation able to work? For container health checks and load balancers."""

from django.contrib.auth.decorators import login_not_required
from django.core.cache import cache
from django.db import Error, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from redis.exceptions import RedisError


@never_cache
@login_not_required
def health(request: HttpRequest) -> JsonResponse:
    """200 when PostgreSQL and Redis answer, else 503 and which does not; no details, for it is open to all."""
    answers = {"database": _database_answers(), "redis": _redis_answers()}
    return JsonResponse(answers, status=200 if all(answers.values()) else 503)


def _database_answers() -> bool:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Error:
        return False
    return True


def _redis_answers() -> bool:
    try:
        cache.get("health")
    except (RedisError, OSError):
        return False
    return True
