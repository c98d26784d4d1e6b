"""Helpers for the OpenAPI document: actions, errors and JSON schemas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema
from pydantic import BaseModel, TypeAdapter
from rest_framework import serializers
from rest_framework.decorators import action

from dashboard.requests.problems import PROBLEM, problem, whole
from experiments.specification import ExperimentSpec

if TYPE_CHECKING:
    from rest_framework.decorators import ViewSetAction

View = TypeVar("View", bound=Callable[..., Any])
Method = Literal["get", "post", "put", "delete"]
_BOUNDS: Final = {"gt": "exclusiveMinimum", "ge": "minimum", "lt": "exclusiveMaximum", "le": "maximum"}
_SENTENCES: Final = {
    400: "The request is invalid; every error names its field.",
    401: "Not signed in, or the token is wrong.",
    403: "Your role in the project does not allow this.",
    404: "Not found, or not visible to you.",
    406: "Answers are JSON only.",
    409: "The change conflicts with the current state: for example published results, a used idempotency key, a newer version.",
    410: "Expired: the file or the events after this cursor were removed after the retention period.",
    416: "The file has no such bytes; `Content-Range` has its size.",
    429: "The user's limit of concurrent requests is reached; try again after `Retry-After`.",
    415: "The media type of the body is not supported.",
}
RANGE: Final = OpenApiParameter(
    "Range",
    str,
    OpenApiParameter.HEADER,
    description="`bytes=FIRST-LAST`: only that part (206); `If-Range` with an `ETag`.",
)
PROJECT: Final = OpenApiParameter(
    "project", str, description="Slug of the project; by default that of the token, or `default`."
)


class ErrorEntrySerializer(serializers.Serializer[Any]):
    """One error, at the dotted path of its field (empty: the whole request)."""

    path = serializers.CharField(allow_blank=True, read_only=True)
    message = serializers.CharField(read_only=True)
    line = serializers.IntegerField(required=False, help_text="The line of a YAML body.")


class ErrorsSerializer(serializers.Serializer[Any]):
    """The body of every error: a problem document (RFC 9457)."""

    type = serializers.CharField(read_only=True, help_text="`about:blank`: the status is the kind of problem.")
    title = serializers.CharField(read_only=True, help_text="The status in words.")
    status = serializers.IntegerField(read_only=True)
    detail = serializers.CharField(read_only=True, help_text="The first of the errors as a sentence.")
    errors = ErrorEntrySerializer(many=True, read_only=True)  # type: ignore[assignment]  # a field, not the property


UNFILTERED: Final[dict[str, Any]] = {"pagination_class": None, "filter_backends": []}
"""Options of actions that take other query parameters than the list."""


def row_action(
    method: Method,
    answers: Any,
    codes: Sequence[int],
    *,
    request: Any = None,
    parameters: Sequence[Any] = (),
    **options: Any,
) -> Callable[[View], ViewSetAction[View]]:
    """Declare an action of one row with its answers, errors and parameters."""
    responses = {**(answers if isinstance(answers, dict) else {200: answers}), **errors(*codes)}
    operation_id = options.pop("operation_id", None)

    def declare(view: View) -> ViewSetAction[View]:
        described = action(detail=True, methods=[method], **options)(view)
        describe = extend_schema(
            operation_id=operation_id, parameters=list(parameters), request=request, responses=responses
        )
        declared: ViewSetAction[View] = describe(described)
        return declared

    return declare


def errors(*codes: int) -> dict[Any, Any]:
    """Return the description of error answers; 401 and 406 are possible everywhere."""
    return {
        (code, PROBLEM): OpenApiResponse(ErrorsSerializer, description=_SENTENCES[code], examples=[_refusal(code)])
        for code in (*codes, 401, 406)
    }


def _refusal(code: int) -> OpenApiExample:
    """Return an example of an error."""
    wrong_field = {"path": "project", "message": "there is no project of this name in which you may do this"}
    return OpenApiExample("Problem", value=problem(code, [wrong_field if code == 400 else whole(_SENTENCES[code])]))


def specification() -> dict[str, Any]:
    """Return the JSON schema of a specification."""
    return in_place(ExperimentSpec)


def bodies_are_required(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Mark request bodies as required in the OpenAPI document."""
    for operations in result["paths"].values():
        for operation in operations.values():
            if "requestBody" in operation:
                operation["requestBody"]["required"] = True
    return result


def fields_may_be_left_out(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Mark fields as optional in answers whose request can select fields."""
    components = result["components"]["schemas"]
    for operations in result["paths"].values():
        for operation in operations.values():
            if any(parameter["name"] == "fields" for parameter in operation.get("parameters", ())):
                for name in _named(operation["responses"]["200"]):
                    page = components[name]
                    rows = _named(page.get("properties", {}).get("results", {}))
                    for row in rows or [name]:
                        components[row].pop("required", None)
    return result


def _named(node: Any) -> list[str]:
    if isinstance(node, dict):
        names = [str(node["$ref"]).rpartition("/")[2]] if "$ref" in node else []
        return [*names, *(name for value in node.values() for name in _named(value))]
    return [name for item in node for name in _named(item)] if isinstance(node, list) else []


def in_place(model: type[BaseModel]) -> dict[str, Any]:
    """Return a model's JSON schema without ``$defs``, which OpenAPI lacks."""
    return _resolved(model.model_json_schema())


def dataclass_schema(kind: Any) -> dict[str, Any]:
    """Return the JSON schema of ``dataclasses.asdict`` of a class, without ``$defs``."""
    schema = TypeAdapter(kind).json_schema(mode="serialization")
    for part in (schema, *schema.get("$defs", {}).values()):
        part["required"] = list(part["properties"])  # fields with a default are always present
    resolved: dict[str, Any] = _without_places(_resolved(schema))
    return resolved


def _without_places(node: Any) -> Any:
    """Describe tuples as lists: few clients support ``prefixItems``."""
    if isinstance(node, list):
        return [_without_places(item) for item in node]
    if not isinstance(node, dict):
        return node
    described = {name: _without_places(value) for name, value in node.items() if name != "prefixItems"}
    items = node.get("prefixItems", [])
    kinds = [kind for index, kind in enumerate(items) if kind not in items[:index]]
    if not kinds:
        return described
    return {**described, "items": _without_places(kinds[0] if len(kinds) == 1 else {"anyOf": kinds})}


def _resolved(schema: dict[str, Any]) -> dict[str, Any]:
    parts = schema.pop("$defs", {})
    resolved: dict[str, Any] = _in_place(schema, parts)
    return resolved


def _in_place(node: Any, parts: dict[str, Any]) -> Any:
    if isinstance(node, dict):
        reference = node.get("$ref")
        if isinstance(reference, str):
            rest = {name: value for name, value in node.items() if name != "$ref"}
            return _in_place({**parts[reference.rpartition("/")[2]], **rest}, parts)
        return _bounded({name: _in_place(value, parts) for name, value in node.items()})
    if isinstance(node, list):
        return [_in_place(item, parts) for item in node]
    return node


def _bounded(node: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with standard bounds in place of pydantic's."""
    bounds = {_BOUNDS[name]: node.pop(name) for name in _BOUNDS if name in node}
    if not bounds:
        return node
    kinds = [
        {**kind, **bounds} if kind.get("type") in ("number", "integer") else kind for kind in node.get("anyOf", ())
    ]
    return {**node, "anyOf": kinds} if kinds else {**node, **bounds}
