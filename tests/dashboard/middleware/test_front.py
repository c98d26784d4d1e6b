"""Limits before views, and headers of all answers."""

from __future__ import annotations

import threading

import pytest
from allauth.account.views import LoginView
from django.contrib.auth.models import User
from django.test import Client

SIGN_IN = "/sign-in/"
WRONG = {"username": "okafor", "password": "wrong horse"}


@pytest.mark.parametrize("address", ["/", "/experiments/", "/sign-in/", "/api/v1/experiments/", "/nothing-here/"])
def test_answers_have_security_and_cache_headers(page, address):
    headers = page.get(address).headers
    policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert [name for name, sources in policy.items() if "unsafe" in sources] == ["style-src-attr"]
    assert {"private", "no-cache"} <= set(headers["Cache-Control"].split(", "))
    assert {"HX-Request", "HX-Target"} <= set(headers["Vary"].split(", "))  # a part is no copy of its page
    assert "camera=()" in headers["Permissions-Policy"]


def test_a_body_beyond_the_limit_is_refused_unread(db, settings):
    settings.MAX_BODY_BYTES = 1 << 20
    for address, text in ((SIGN_IN, "Request refused"), ("/api/v1/experiments/", '"errors"')):
        answer = Client().post(address, "x" * (settings.MAX_BODY_BYTES + 1), content_type="text/plain")
        assert answer.status_code == 413
        assert text in answer.content.decode()


def test_a_name_is_locked_for_an_address_after_ten_wrong_passwords_and_for_no_other(db, empty_redis):
    User.objects.create_user("okafor", password="correct horse")
    right = {"username": "okafor", "password": "correct horse"}
    statuses = [Client().post(SIGN_IN, WRONG).status_code for _ in range(11)]
    assert statuses == [200] * 9 + [429] * 2
    locked = Client().post(SIGN_IN, right)
    assert locked.status_code == 429
    assert Client().post(SIGN_IN, right, REMOTE_ADDR="192.0.2.7").status_code == 302


def test_concurrent_sign_ins_beyond_the_limit_answer_429(db, monkeypatch, empty_redis):
    busy, free = threading.Semaphore(0), threading.Event()

    def wait(self, request, *args, **kwargs):
        busy.release()
        assert free.wait(10)
        return self.render_to_response({})

    monkeypatch.setattr(LoginView, "dispatch", wait)
    client = Client()
    people = [threading.Thread(target=client.post, args=(SIGN_IN, WRONG)) for _ in range(2)]
    for one in people:
        one.start()
        assert busy.acquire(timeout=10)
    try:
        refused = client.post(SIGN_IN, WRONG)
        assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")
        assert client.get("/healthz").status_code == 200
    finally:
        free.set()
        for one in people:
            one.join(10)
    assert client.get("/healthz").status_code == 200
