"""REST: the OpenAPI document, and answers that match it."""

from __future__ import annotations

import collections
import copy
import time
from typing import Any

import pytest
import schemathesis
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.wsgi import get_wsgi_application
from django.test import Client
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.internal.conjecture import providers
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    allow_header_conformance,
    content_type_conformance,
    ensure_resource_availability,
    ignored_auth,
    missing_required_header,
    negative_data_rejection,
    positive_data_acceptance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
    use_after_free,
)

from experiments.models import ApiToken, Prediction, ShareLink, Trial
from tests.dashboard.api.clients import client_of
from tests.dashboard.api.refusals import unexplained
from tests.dashboard.people.table import TABLE
from tests.experiments import factories
from tests.experiments.races import at_once
from tests.kept_rows import PUBLISHED_STUDIES
from workers import queue

schemathesis.serializer.alias("application/zip", "application/octet-stream")
pytestmark = pytest.mark.timeout(240)  # the first of them waits for the services too

# object_level_authorization compares several callers: the table of addresses and roles does (tests/dashboard/people).
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
    allow_header_conformance,
    unsupported_method,
    missing_required_header,
    ignored_auth,
    negative_data_rejection,
    use_after_free,
    ensure_resource_availability,
]
ADDRESSES = collections.defaultdict[str, set[str]](set)
for _method, _, _route in (row.partition(" ") for row in TABLE):
    if _route.startswith("api/v1/") and _route not in ("api/v1/", "api/v1/schema/"):
        _path = _route.replace("<pk>", "{id}").replace("<", "{").replace(">", "}")
        ADDRESSES[f"/{_path}"].add(_method.lower())


@pytest.mark.django_db(transaction=True)
def test_one_document_is_made_at_a_time(empty_redis: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library loads its extensions in the first request, without a lock."""
    reader, at_work, most = factories.person("ada"), [0], [0]
    make = SchemaGenerator.get_schema

    def counted(*args: Any, **kwargs: Any) -> Any:
        at_work[0] += 1
        most[0] = max(most[0], at_work[0])
        time.sleep(0.2)
        document = make(*args, **kwargs)
        at_work[0] -= 1
        return document

    monkeypatch.setattr(SchemaGenerator, "get_schema", counted)
    statuses = at_once(lambda _: client_of(reader).get("/api/v1/schema/").status_code, 4)
    assert (statuses, most) == ([200] * 4, [1])


def test_it_is_complete_and_valid(tmp_path: Any) -> None:
    call_command("spectacular", "--fail-on-warn", "--validate", "--file", str(tmp_path / "schema.yaml"))


@pytest.mark.django_db
def test_it_names_every_address_and_how_to_sign_in(client: Client) -> None:
    data = client_of(factories.person("ada")).get("/api/v1/schema/").json()
    assert {path: set(operations) for path, operations in data["paths"].items()} == ADDRESSES
    assert data["openapi"].startswith("3.1.")
    assert data["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    body = data["paths"]["/api/v1/experiments/"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert set(body["required"]) == {"name", "workload"}
    assert "$defs" not in str(data)
    errors = data["components"]["schemas"]["Errors"]
    assert set(errors["properties"]) == {"type", "title", "status", "detail", "errors"}


WITHOUT_INPUT = {("/api/v1/quotas/", "get"), ("/api/v1/networks/", "get")}
OPERATIONS = [(path, method) for path, methods in ADDRESSES.items() for method in sorted(methods)]
BOUNDED = settings(
    max_examples=4,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
    deadline=None,
    derandomize=True,
    database=None,
)


@pytest.fixture(autouse=True)
def same_requests_whatever_else_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restrict Hypothesis to constants of no module, for equal requests."""
    monkeypatch.setattr(providers, "_get_local_constants", providers.Constants)
    providers.CONSTANTS_CACHE.cache.clear()


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """The OpenAPI document, which takes a second to make."""
    data: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    return data


@pytest.fixture
def signed_in(transactional_db: None, registered_programs: None) -> dict[str, str]:
    """Return the header of a superuser, with one object of most kinds."""
    admin = factories.person("admin", is_superuser=True)
    PUBLISHED_STUDIES.restore()
    factories.person("ada")
    factories.experiment(owner=admin)
    trial = factories.analysing()
    trial.finish(factories.RESULT)
    factories.stored_file(trial)
    factories.prediction(trial.experiment)
    queue.register_program({"name": "ocean", "program": ["ocean"]}, author=admin)
    ShareLink.issue([trial.experiment], by=admin, days=7)
    _, key = ApiToken.issue(admin, "test")
    ApiToken.issue(admin, "other")
    return {"Authorization": f"Bearer {key}"}


def loaded(document: dict[str, Any]) -> Any:
    schema = schemathesis.openapi.from_dict(document)
    # Searching our sources for constants for every URL would take half of the time.
    schema.config.analysis.constants.enabled = False
    schema.app, schema.location = get_wsgi_application(), "/api/v1/schema/"
    return schema


def of_what_there_is(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with names of existing objects."""
    narrowed = copy.deepcopy(document)
    trial = Trial.objects.get(ended_at__isnull=False, experiment__published=False)
    named = {
        "clusters": "testbed",
        "experiments": trial.experiment.slug,
        "predictions": str(Prediction.objects.get().pk),
        "programs": "ocean",
        "projects": "default",
        "published": "guster-2007-water",
        "shares": str(ShareLink.objects.get().pk),
        "tokens": str(ApiToken.objects.get(name="other").pk),
        "trials": str(trial.pk),
        "workloads": "water",
    }
    others = {
        "/api/v1/trials/{id}/artifacts/{name}/": "stdout.txt",
        "/api/v1/people/{name}/": "ada",
        "/api/v1/projects/{slug}/members/{name}/": "ada",
    }
    for path, operations in narrowed["paths"].items():
        kind = path.split("/")[3]
        for operation in operations.values():
            for parameter in operation.get("parameters", ()):
                if parameter["name"] in ("slug", "id") and kind in named:
                    parameter["schema"] = {"enum": [named[kind]]}
                elif parameter["name"] == "name" and path in others:
                    parameter["schema"] = {"enum": [others[path]]}
                elif parameter["name"] == "against":
                    parameter["schema"] = {"enum": [trial.pk]}
                elif parameter["name"] == "project":
                    parameter["schema"] = {"enum": ["default"]}
    specifications = (
        ("/api/v1/experiments/", "post"),
        ("/api/v1/experiments/{slug}/", "put"),
        ("/api/v1/validate/", "post"),
    )
    for path, method in specifications:
        fields = _body(narrowed, path, method)["properties"]
        fields["workload"], fields["cluster"] = {"enum": ["water"]}, {"enum": ["testbed"]}
    _body(narrowed, "/api/v1/programs/{slug}/", "put")["properties"]["name"] = {"enum": ["ocean"]}
    _body(narrowed, "/api/v1/shares/", "post")["oneOf"][0]["properties"]["experiment"] = {
        "enum": [trial.experiment.slug]
    }
    schemas = narrowed["components"]["schemas"]
    schemas["Moved"]["properties"]["project"] = {"enum": ["default"]}
    schemas["Wanted"]["properties"]["experiment"] = {"enum": [trial.experiment.slug]}
    return narrowed


def _body(document: dict[str, Any], path: str, method: str) -> Any:
    return document["paths"][path][method]["requestBody"]["content"]["application/json"]["schema"]


@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_answers_match_the_schema(document: dict[str, Any], signed_in: dict[str, str], path: str, method: str) -> None:
    hold_against_its_promises(document, signed_in, path, method, BOUNDED)


@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_answers_match_the_schema_in_many_requests(
    document: dict[str, Any], signed_in: dict[str, str], path: str, method: str
) -> None:
    hold_against_its_promises(document, signed_in, path, method, settings(BOUNDED, max_examples=60, derandomize=False))


# The pytest plugin of schemathesis does not know this pytest, so its strategies are used directly.
def hold_against_its_promises(
    document: dict[str, Any], signed_in: dict[str, str], path: str, method: str, bounds: settings
) -> None:
    """Send valid and invalid requests by the schema; judge all answers."""
    accepted, wrong = loaded(of_what_there_is(document))[path][method], loaded(document)[path][method]

    @bounds
    @given(case=accepted.as_strategy(generation_mode=GenerationMode.POSITIVE))
    def takes(case: Any) -> None:
        response = case.call(headers=signed_in)
        checks = [*CHECKS, positive_data_acceptance]
        if response.status_code == 400 and not unexplained(path, method, response.json()["errors"]):
            checks.remove(positive_data_acceptance)
        case.validate_response(response, checks=checks, headers=signed_in)

    @bounds
    @given(case=wrong.as_strategy(generation_mode=GenerationMode.NEGATIVE))
    def refuses(case: Any) -> None:
        case.call_and_validate(checks=CHECKS, headers=signed_in)

    takes()
    if (path, method) not in WITHOUT_INPUT:
        refuses()


def test_it_answers_other_methods_with_those_that_the_schema_names(
    document: dict[str, Any], signed_in: dict[str, str]
) -> None:
    judged = 0
    for path, operations in of_what_there_is(document)["paths"].items():
        parameters = [parameter for operation in operations.values() for parameter in operation.get("parameters", ())]
        defaults = {
            parameter["name"]: parameter["schema"]["enum"][0]
            for parameter in parameters
            if "enum" in parameter["schema"]
        }
        for method in {"get", "post", "put", "patch", "delete"} - set(operations):
            address = path.format_map(collections.defaultdict(lambda: "1", defaults))
            answer = Client(headers=signed_in).generic(method.upper(), address)
            assert answer.status_code == 405, (method, path, answer.content)
            allowed = {part.strip().lower() for part in answer.headers["Allow"].split(",")}
            assert allowed - {"head", "options"} == set(operations), (path, allowed)
            judged += 1
    assert judged > len(ADDRESSES)


def test_created_objects_exist_and_deleted_ones_do_not(document: dict[str, Any], signed_in: dict[str, str]) -> None:
    """Requests that follow each other: listed objects are read and deleted."""
    narrowed = of_what_there_is(document)
    for path in ("/api/v1/tokens/{id}/", "/api/v1/programs/{slug}/"):
        narrowed["paths"][path] = document["paths"][path]
    fields = _body(narrowed, "/api/v1/programs/", "post")["properties"]
    for name in set(fields) - {"name", "program"}:
        del fields[name]
    fields["program"] = {"const": ["lake"]}
    schema = loaded(narrowed).include(path_regex="^/api/v1/(tokens|programs|shares)/")
    admin = User.objects.get(username="admin")
    followed = collections.Counter[str]()

    class Machine(schema.as_state_machine()):  # type: ignore[misc]
        def setup(self) -> None:
            super().setup()
            _, key = ApiToken.issue(admin, "one of many")  # new, as a token may revoke itself
            self.headers = {"Authorization": f"Bearer {key}"}

        def get_call_kwargs(self, case: Any) -> dict[str, Any]:
            return {"headers": self.headers}

        def validate_response(self, response: Any, case: Any, **options: Any) -> None:
            followed[f"{case.method} {response.status_code}"] += 1
            checks = [check for check in CHECKS if check is not ignored_auth]
            case.validate_response(response, checks=checks, headers=self.headers, recorder=self.recorder)

    Machine.run(settings=settings(BOUNDED, max_examples=12, stateful_step_count=8))
    assert followed["POST 201"], followed
    assert followed["DELETE 204"], followed
