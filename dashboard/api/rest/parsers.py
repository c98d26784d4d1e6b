"""Request bodies: strict JSON, YAML as text, and validation."""

from __future__ import annotations

import json
from typing import IO, Any, NoReturn

from rest_framework import serializers
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser
from rest_framework.request import Request

from experiments.common.storable import distinct_fields
from experiments.specification.yaml_lines import MAX_BYTES


def validated(serializer: type[serializers.Serializer[Any]], request: Request, **options: Any) -> Any:
    """Return the validated body of a request. Raise ValidationError."""
    body = serializer(data=request.data, **options)
    body.is_valid(raise_exception=True)
    return body.validated_data


class YamlText(str):
    """The text of a YAML body, not yet parsed."""

    __slots__ = ()


class StrictJsonParser(BaseParser):
    """Parser of JSON that refuses duplicate fields, NaN and deep nesting."""

    media_type = "application/json"

    def parse(self, stream: IO[Any], media_type: str | None = None, parser_context: Any = None) -> Any:
        try:
            return json.loads(_text(stream), object_pairs_hook=distinct_fields, parse_constant=_refuse_constant)
        except RecursionError:
            raise ParseError("not valid JSON: nested too deeply") from None
        except ValueError as error:
            raise ParseError(f"not valid JSON: {error}") from None


class YamlParser(BaseParser):
    """Parser of YAML that returns its text, so that errors can name lines."""

    media_type = "application/yaml"

    def parse(self, stream: IO[Any], media_type: str | None = None, parser_context: Any = None) -> Any:
        return YamlText(_text(stream))


def _text(stream: IO[Any]) -> str:
    body = stream.read(MAX_BYTES + 1)
    if len(body) > MAX_BYTES:
        raise ParseError(f"larger than {MAX_BYTES} bytes")
    try:
        return str(body, "utf-8")
    except UnicodeDecodeError:
        raise ParseError("the body is not UTF-8 text") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")
