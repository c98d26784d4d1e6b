"""What the OpenAPI schema needs to be told: the specification's own JSON schema, and the one shape of errors."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse

from dashboard.api.rest.in_place import in_place
from dashboard.api.serializers import ErrorsSerializer
from dashboard.requests.problems import PROBLEM, problem, whole
from experiments.specification import ExperimentSpec

_SENTENCES: Final = {
    400: "Something in the request is wrong; every error names its field.",
    401: "Not signed in, or the token is wrong.",
    403: "Your role in the project does not allow this.",
    404: "Not there, or not for you to see.",
    406: "Answers are JSON only.",
    409: "Published and imported results are never changed; a key of one request was sent with another one; a report has a newer version.",
    410: "No longer kept: the file was removed after its retention period, or the events after this cursor were.",
    416: "The file has no such bytes; `Content-Range` says how many it has.",
    429: "As many of these as one person may have at once are being made; `Retry-After` says when to come again.",
    415: "The body has another type than those that are listed.",
}
RANGE: Final = OpenApiParameter(
    "Range",
    str,
    OpenApiParameter.HEADER,
    description="`bytes=FIRST-LAST`: that part alone (206); `If-Range` with an `ETag`.",
)
PROJECT: Final = OpenApiParameter("project", str, description="Slug of the project; `default` when left out.")


def errors(*codes: int) -> dict[Any, Any]:
    """Return the description of error answers; 401 and 406 are possible everywhere."""
    return {
        (code, PROBLEM): OpenApiResponse(ErrorsSerializer, description=_SENTENCES[code], examples=[_refusal(code)])
        for code in (*codes, 401, 406)
    }


def _refusal(code: int) -> OpenApiExample:
    """An error as it is answered: a wrong field of the request, or a sentence about the request as a whole."""
    wrong_field = {"path": "project", "message": "there is no project of this name in which you may do this"}
    return OpenApiExample("Problem", value=problem(code, [wrong_field if code == 400 else whole(_SENTENCES[code])]))


def specification() -> dict[str, Any]:
    """Return the JSON schema of a specification."""
    return in_place(ExperimentSpec)


def bodies_are_required(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Say in the document that a body has to be sent where one is read."""
    for operations in result["paths"].values():
        for operation in operations.values():
            if "requestBody" in operation:
                operation["requestBody"]["required"] = True
    return result


def fields_may_be_left_out(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Say in the document that an answer may lack fields where its request can choose them."""
    components = result["components"]["schemas"]
    for operations in result["paths"].values():
        for operation in operations.values():
            if any(each["name"] == "fields" for each in operation.get("parameters", ())):
                for name in _named(operation["responses"]["200"]):
                    page = components[name]
                    rows = _named(page.get("properties", {}).get("results", {}))
                    for row in rows or [name]:
                        components[row].pop("required", None)
    return result


def _named(node: Any) -> list[str]:
    """The components that a part of the document refers to."""
    if isinstance(node, dict):
        own = [str(node["$ref"]).rpartition("/")[2]] if "$ref" in node else []
        return [*own, *(name for value in node.values() for name in _named(value))]
    return [name for each in node for name in _named(each)] if isinstance(node, list) else []
