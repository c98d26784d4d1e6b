"""Facts of a cluster: form, validation and use in rates."""

import pytest
from django.urls import reverse

from experiments.cluster_kinds import facts as cluster_facts
from experiments.models import Cluster
from tests.dashboard.texts import text_of

FORM = {"hosts": "8", "cores_per_host": "1", "clock_hz": "1.756 GHz", "operations_per_cycle": "2", "watts": "0.9 kW"}
ADDRESS = "/clusters/testbed/facts/"


@pytest.fixture
def maintainer(page, person):
    person.memberships.update(role="maintainer")
    return page


def test_the_form_says_which_facts_a_check_fills_in(maintainer):
    assert maintainer.get(ADDRESS).context["is_filled_in"] is False, "links of the test-bed are virtual"
    Cluster.objects.create(slug="lab", name="Lab", kind="ssh", settings={"hosts": ["n1"]})
    assert maintainer.get("/clusters/lab/facts/").context["is_filled_in"] is True


def stored():
    return Cluster.objects.get(slug="testbed").facts


def test_facts_are_stored_in_base_units(maintainer):
    response = maintainer.post(ADDRESS, {**FORM, "price": "2490", "currency": "$", "years_of_use": " "})
    assert response.url == reverse("cluster", args=["testbed"])
    assert stored() == {
        "hosts": 8,
        "cores_per_host": 1,
        "clock_hz": 1.756e9,
        "operations_per_cycle": 2.0,
        "watts": 900.0,
        "price": 2490.0,
        "currency": "$",
    }
    text = text_of(maintainer.get(reverse("clusters")))
    assert "28.1\u202fGFLOP/s" in text
    assert "1.756 GHz" in text


def test_form_shows_stored_facts(maintainer):
    maintainer.post(ADDRESS, FORM)
    text = text_of(maintainer.get(ADDRESS))
    for value in ("8", "1.756 GHz", "2", "900 W"):
        assert f'value="{value}"' in text
    assert f'href="{reverse("cluster", args=["testbed"])}">Cancel</a>' in text


@pytest.mark.parametrize(
    ("name", "wrong", "words"),
    [
        ("hosts", "2.5", "must be a whole number"),
        ("price_per_kwh", "0,30", "must be a number, not &#x27;0,30&#x27;; write a point, not a comma"),
        ("hosts", "0", "greater than or equal to 1"),
        ("offloads", "foo", "tso, gso, gro and lro"),
        ("offloads", "off, tso", "must be off"),
        ("clock_hz", "fast", "write for example"),
        ("clock_hz", "3 parsec", "unknown unit"),
        ("clock_hz", "-1 GHz", "greater than 0"),
        ("clock_hz", "2", "2 has no unit; write GHz, MHz, Hz"),
        ("link_bandwidth_bps", " 10. ", "has no unit"),
        ("watts", "9e2", "has no unit"),
        ("idle_watts_per_host", "40", "write kW, W"),
        ("operations_per_cycle", "nan", "finite"),
        ("price", "1e400", "finite"),
        ("watts", "900 Nm", "unknown unit"),
        ("currency", "US dollars", "one short word"),
        ("currency", "\x07", "one short word"),
        ("price", "2490", "needs a currency"),
        ("price_per_host_hour", "1", "needs a currency"),
    ],
)
def test_it_names_a_wrong_value_at_its_field_and_keeps_nothing(maintainer, name, wrong, words):
    response = maintainer.post(ADDRESS, {**FORM, name: wrong})
    assert response.status_code == 422
    message = response.content.decode().split(f'id="err-{name}">')[1].split("</p>")[0]
    assert words in message
    assert stored() == {}


def test_facts_without_a_form_field_stay(maintainer):
    Cluster.objects.get(slug="testbed").describe({"room": "B 12", "hosts": 3})
    maintainer.post(ADDRESS, {"hosts": ""})
    assert stored() == {"room": "B 12"}


def test_the_form_shows_every_fact_and_saving_it_loses_none(maintainer):
    facts = {"idle_watts_per_host": 40.0, "mtu": 9000, "offloads": "tso"}
    Cluster.objects.get(slug="testbed").describe(facts)
    form = maintainer.get(ADDRESS)
    fields = [field for _, _, group in form.context["groups"] for field in group]
    assert {field.path for field in fields} == set(cluster_facts.fields())
    maintainer.post(ADDRESS, {field.path: field.value for field in fields})
    assert stored() == facts
