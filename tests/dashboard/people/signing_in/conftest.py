"""A user who signed in and confirmed the password."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.dashboard.people.signing_in.second_factor import PERSON


@pytest.fixture
def signed_in(person: User, client: Client) -> Client:
    client.post("/sign-in/", PERSON)
    client.post("/account/again/", {"password": PERSON["password"]})
    return client
