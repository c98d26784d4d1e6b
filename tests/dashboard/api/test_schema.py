"""REST: the OpenAPI schema, and whether the answers keep what it promises."""

from __future__ import annotations

from typing import Any

import pytest
import schemathesis
from django.core.management import call_command
from django.core.wsgi import get_wsgi_application
from django.test import Client
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    allow_header_conformance,
    content_type_conformance,
    ignored_auth,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from experiments.models import ApiToken
from tests.dashboard.api.clients import client_of
from tests.experiments import factories

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
    allow_header_conformance,
    unsupported_method,
    ignored_auth,
    negative_data_rejection,
]
ADDRESSES = {
    "/api/v1/clusters/": {"get"},
    "/api/v1/clusters/{slug}/": {"get"},
    "/api/v1/clusters/{slug}/test/": {"post"},
    "/api/v1/programs/": {"get", "post"},
    "/api/v1/programs/{slug}/": {"get", "put"},
    "/api/v1/workloads/": {"get"},
    "/api/v1/workloads/{slug}/": {"get"},
    "/api/v1/compare/": {"get"},
    "/api/v1/explore/": {"get"},
    "/api/v1/explore/export/{form}/": {"get"},
    "/api/v1/history/": {"get"},
    "/api/v1/history/{configuration}/{cluster}/": {"get"},
    "/api/v1/experiments/": {"get", "post"},
    "/api/v1/experiments/{slug}/": {"get", "put"},
    "/api/v1/experiments/{slug}/diagnosis/": {"get"},
    "/api/v1/experiments/{slug}/efficiencies/": {"get"},
    "/api/v1/experiments/{slug}/findings/": {"get"},
    "/api/v1/experiments/{slug}/priority/": {"post"},
    "/api/v1/experiments/{slug}/repetitions/": {"post"},
    "/api/v1/experiments/{slug}/go-on/": {"post"},
    "/api/v1/experiments/{slug}/rerun-failed/": {"post"},
    "/api/v1/experiments/{slug}/cancel/": {"post"},
    "/api/v1/experiments/{slug}/move/": {"post"},
    "/api/v1/experiments/{slug}/result/": {"get"},
    "/api/v1/quotas/": {"get"},
    "/api/v1/changes/": {"get"},
    "/api/v1/networks/": {"get", "put"},
    "/api/v1/predictions/": {"get", "post"},
    "/api/v1/predictions/export/": {"get"},
    "/api/v1/predictions/{id}/": {"get"},
    "/api/v1/predictions/{id}/check/": {"post"},
    "/api/v1/projects/": {"get"},
    "/api/v1/projects/{slug}/": {"get"},
    "/api/v1/projects/{slug}/members/{name}/": {"delete", "put"},
    "/api/v1/shares/": {"get", "post"},
    "/api/v1/shares/{id}/": {"delete"},
    "/api/v1/tasks/": {"get"},
    "/api/v1/tasks/{id}/": {"delete", "get"},
    "/api/v1/tasks/{id}/file/": {"get"},
    "/api/v1/tokens/": {"get"},
    "/api/v1/tokens/{id}/": {"delete", "get"},
    "/api/v1/trials/": {"get"},
    "/api/v1/trials/{id}/": {"get"},
    "/api/v1/trials/{id}/cancel/": {"post"},
    "/api/v1/trials/{id}/artifacts/{name}/": {"get"},
}


def test_it_is_complete_and_valid(tmp_path: Any) -> None:
    call_command("spectacular", "--fail-on-warn", "--validate", "--file", str(tmp_path / "schema.yaml"))


@pytest.mark.django_db
def test_it_names_every_address_and_how_to_sign_in(client: Client) -> None:
    told = client_of(factories.person("ada")).get("/api/v1/schema/").json()
    assert {path: set(operations) for path, operations in told["paths"].items()} == ADDRESSES
    assert told["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    body = told["paths"]["/api/v1/experiments/"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert set(body["required"]) == {"name", "workload"}
    assert "$defs" not in str(told)
    errors = told["components"]["schemas"]["Errors"]
    assert set(errors["properties"]) == {"errors"}


@pytest.fixture
def api_schema(transactional_db: None) -> Any:
    admin = factories.person("admin", is_superuser=True)
    factories.experiment(owner=admin)
    trial = factories.analysing()
    trial.finish(factories.RESULT)
    _, key = ApiToken.issue(admin, "test")
    sign_in = {"Authorization": f"Bearer {key}"}
    schema = schemathesis.openapi.from_wsgi("/api/v1/schema/", get_wsgi_application(), headers=sign_in)
    schema.config.headers = sign_in
    return schema


WITHOUT_INPUT = {("/api/v1/quotas/", "get"), ("/api/v1/networks/", "get")}
OPERATIONS = [(path, method) for path, methods in ADDRESSES.items() for method in sorted(methods)]


# The pytest plugin of schemathesis does not know this pytest, so its strategies are used directly.
@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_it_keeps_what_the_schema_promises(api_schema: Any, path: str, method: str) -> None:
    operation = api_schema[path][method]
    for mode in GenerationMode:  # requests as described, and requests with something wrong
        if mode == GenerationMode.NEGATIVE and (path, method) in WITHOUT_INPUT:
            continue

        @settings(
            max_examples=8,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
            deadline=None,
            derandomize=True,
            database=None,
        )
        @given(case=operation.as_strategy(generation_mode=mode))
        def keeps(case: Any) -> None:
            case.call_and_validate(checks=CHECKS)

        keeps()
