"""Transport, binding and distribution in the form of a new experiment."""

from __future__ import annotations

from typing import Any

from django.http import QueryDict

from dashboard.panels.new.draft import draft_from_post, posted_draft
from dashboard.panels.new.form import Form
from experiments.specification import parse

OWN = "ucx: UCX_TLS=rc,self --mca pml ucx"
FORM = {"name": "a", "workload": "water", "cluster": "testbed", "transport": "cluster", "bind": "cluster"}


def posted(**fields: Any) -> QueryDict:
    post = QueryDict(mutable=True)
    for name, value in {**FORM, **fields}.items():
        post.setlist(name, value if isinstance(value, list) else [value])
    return post


def test_fields_left_to_the_cluster_are_not_in_the_draft() -> None:
    draft = draft_from_post(posted())
    assert not {"transport", "bind", "distribution"} & draft.keys()
    assert not Form(draft).has_launch_options


def test_chosen_fields_return_to_the_form() -> None:
    draft = draft_from_post(posted(transport=OWN, bind="core", distribution="cyclic"))
    assert (draft["transport"], draft["bind"], draft["distribution"]) == (OWN, "core", "cyclic")
    form = Form(draft)
    assert form.has_launch_options
    assert (form["transport"].value, form["bind"].value) == (OWN, "core")


def test_swept_transports_with_commas_survive_form_and_yaml() -> None:
    draft = draft_from_post(posted(sweep_name=["transport"], sweep_values=[f"native, {OWN}"]))
    assert parse(draft).swept("transport") == ["native", OWN]
    (row,) = Form(draft).sweep_rows
    assert (row.values, row.count) == (f"native, {OWN}", 2)
    mapping = "{name: ucx, environment: {UCX_TLS: 'rc,self'}, arguments: [--mca, pml, ucx]}"
    text = f"name: a\nworkload: water\nsweep:\n  transport: [native, {mapping}]\n"
    from_yaml = posted_draft(posted(source="yaml", yaml=text), max_trials=100)
    assert from_yaml["sweep"] == draft["sweep"]
    assert {"transport", "bind", "distribution"} <= {name for name, _ in Form(draft).sweepable}
