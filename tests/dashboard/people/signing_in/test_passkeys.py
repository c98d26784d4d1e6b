"""Keys as a second factor and as the only one, with an authenticator of this file."""

from __future__ import annotations

import hashlib
import json
import secrets
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from django.contrib.auth.models import User
from django.test import Client
from fido2 import cbor
from fido2.cose import ES256
from fido2.utils import websafe_encode

from dashboard.middleware.front import MOST_ACCOUNT_BYTES
from dashboard.people.forms import MOST_KEYS
from tests.dashboard.people.signing_in.second_factor import FACTOR, PERSON

pytestmark = pytest.mark.usefixtures("empty_redis")
ADD, SIGN_IN = f"{FACTOR}webauthn/add/", f"{FACTOR}webauthn/login/"
PRESENT, VERIFIED, HAS_KEY = 1, 4, 64
"""Flags of an answer (Web Authentication, 6.1)."""


class Key:
    """An authenticator that signs for ``testserver``."""

    def __init__(self) -> None:
        self.id, self.private = secrets.token_bytes(32), ec.generate_private_key(ec.SECP256R1())

    def _data(self, flags: int) -> bytes:
        return hashlib.sha256(b"testserver").digest() + bytes([flags | PRESENT]) + bytes(4)

    def _answer(self, options: Any, kind: str, **response: bytes) -> dict[str, Any]:
        client = {"type": f"webauthn.{kind}", "challenge": options["challenge"], "origin": "http://testserver"}
        fields = {"clientDataJSON": json.dumps(client).encode(), **response}
        return {
            "id": websafe_encode(self.id),
            "rawId": websafe_encode(self.id),
            "type": "public-key",
            "response": {name: websafe_encode(value) for name, value in fields.items()},
            "clientExtensionResults": {"credProps": {"rk": True}},
        }

    def created(self, options: Any) -> dict[str, Any]:
        public = cbor.encode(dict(ES256.from_cryptography_key(self.private.public_key())))
        data = self._data(VERIFIED | HAS_KEY) + bytes(16) + len(self.id).to_bytes(2, "big") + self.id + public
        statement = {"fmt": "none", "attStmt": {}, "authData": data}
        return self._answer(options, "create", attestationObject=cbor.encode(statement))

    def signed(self, options: Any, user: str, *, flags: int) -> dict[str, Any]:
        answer = self._answer(options, "get", authenticatorData=self._data(flags))
        client = json.dumps({"type": "webauthn.get", "challenge": options["challenge"], "origin": "http://testserver"})
        signed = self._data(flags) + hashlib.sha256(client.encode()).digest()
        signature = self.private.sign(signed, ec.ECDSA(hashes.SHA256()))
        answer["response"] |= {"signature": websafe_encode(signature), "userHandle": user}
        return answer


def options_for(client: Client) -> Any:
    return client.get(ADD).context["js_data"]["creation_options"]["publicKey"]


def add(client: Client, key: Key, **fields: str) -> Any:
    credential = key.created(options_for(client)) | fields
    return client.post(ADD, {"name": "key", "credential": json.dumps(credential), "passwordless": "on"})


@pytest.mark.parametrize("flags", [0, VERIFIED])
def test_a_key_alone_signs_in_only_if_it_verified_its_user(signed_in: Client, flags: int) -> None:
    """Also with the challenge of a second factor, which asks for its presence alone."""
    key = Key()
    user = options_for(signed_in)["user"]["id"]
    assert add(signed_in, key).status_code == 302
    thief = Client()
    User.objects.create_user("eve", password="a long password")
    thief.post("/sign-in/", {"username": "eve", "password": "a long password"})
    thief.post("/account/again/", {"password": "a long password"})
    add(thief, Key())
    thief.post("/sign-out/")
    thief.post("/sign-in/", {"username": "eve", "password": "a long password"})
    challenge = thief.get(f"{FACTOR}authenticate/").context["js_data"]["request_options"]["publicKey"]
    assert challenge["userVerification"] == "preferred"
    session = thief.session
    del session["account_login"]  # as after 15 minutes
    session.save()
    thief.post(SIGN_IN, {"credential": json.dumps(key.signed(challenge, user, flags=flags))})
    answer: Any = thief.get("/api/v1/people/me/")
    assert answer.json().get("name") == (PERSON["username"] if flags & VERIFIED else None)


def test_keys_are_stored_without_the_padding_of_a_client(signed_in: Client) -> None:
    assert add(signed_in, Key(), padding="x" * MOST_ACCOUNT_BYTES).status_code == 413
    assert not Authenticator.objects.exists()


def test_an_account_has_a_limited_number_of_keys(signed_in: Client, person: User) -> None:
    assert add(signed_in, Key()).status_code == 302
    first = Authenticator.objects.get(type=Authenticator.Type.WEBAUTHN)
    more = [Authenticator(user=person, type=first.type, data=first.data) for _ in range(MOST_KEYS - 1)]
    Authenticator.objects.bulk_create(more)
    assert add(signed_in, Key()).status_code == 200
    assert Authenticator.objects.filter(type=first.type).count() == MOST_KEYS
