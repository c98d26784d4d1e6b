"""Signed values of the cache in Redis: pickles run code when they are read."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any, Final

from django.conf import settings
from django.core.cache.backends.redis import RedisSerializer
from redis.exceptions import RedisError

_BYTES: Final = hashlib.sha256().digest_size


class ForgedValue(RedisError):
    """A value that this installation did not write; pages work without it."""


class SignedSerializer(RedisSerializer):
    """Django's serializer with a signature.

    A program that can write to Redis cannot choose code of this installation. Integers, which Redis increments, have no signature.
    """

    def dumps(self, obj: Any) -> Any:
        content: int | bytes = super().dumps(obj)
        return content if isinstance(content, int) else _signature(content) + content

    def loads(self, data: Any) -> Any:
        """Return the value. Raise ForgedValue."""
        try:
            return int(data)
        except ValueError:
            signature, content = data[:_BYTES], data[_BYTES:]
        if not hmac.compare_digest(signature, _signature(content)):
            raise ForgedValue("a value of the cache has another signature")
        return super().loads(content)


def _signature(content: bytes) -> bytes:
    return hmac.digest(f"cache:{settings.SECRET_KEY}".encode(), content, "sha256")
