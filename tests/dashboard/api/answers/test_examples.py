"""Examples of JSON bodies and answers in the OpenAPI document are valid."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from drf_spectacular.generators import SchemaGenerator

from dashboard.api import examples
from experiments.specification import parse, parse_yaml
from tests.dashboard.api.answers.judging import errors, sent

PROBLEM = "application/problem+json"
JSON = ("application/json", PROBLEM)


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    data: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    return data


def bodies(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield bodies of requests and answers: (operation, media type, schema)."""
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            place = f"{method.upper()} {path.removeprefix(examples.ROOT)}"
            for kind, data in operation.get("requestBody", {}).get("content", {}).items():
                yield f"{place} request", kind, data
            for status, answer in operation["responses"].items():
                for kind, data in answer.get("content", {}).items():
                    yield f"{place} {status}", kind, data


def values(media: dict[str, Any]) -> list[Any]:
    return [each["value"] for each in media.get("examples", {}).values()]


def test_every_json_body_has_an_example(document: dict[str, Any]) -> None:
    assert [place for place, kind, data in bodies(document) if kind in JSON and not values(data)] == []
    assert sum(kind in JSON for _, kind, _ in bodies(document)) > 300


def test_every_example_is_valid_against_its_schema(document: dict[str, Any]) -> None:
    wrong = []
    for place, kind, data in bodies(document):
        schema = {"components": document["components"], **data["schema"]}
        judged = sent(schema) if place.endswith(" request") else schema
        wrong += [f"{place} {kind}: {error}" for value in values(data) for error in errors(value, judged)]
    assert not wrong, "\n".join(wrong)


def test_no_example_is_of_an_operation_that_is_not_there(document: dict[str, Any]) -> None:
    shown = {place.rpartition(" ")[0] for place, _, data in bodies(document) if values(data)}
    assert set(examples.known()) <= shown
    used = sum(kind == "application/json" and len(values(data)) for place, kind, data in bodies(document))
    told_here = list(examples.known().values())
    json_bodies = sum("application/json" in each.get("request", {}) for each in told_here)
    assert used == json_bodies + sum(len(each["answers"]) for each in told_here)


def test_a_specification_of_an_example_can_be_submitted(document: dict[str, Any]) -> None:
    for operation in ("POST experiments/", "PUT experiments/{slug}/", "POST validate/"):
        sent = examples.known()[operation]["request"]
        assert parse(sent["application/json"]) == parse_yaml(sent["application/yaml"])
