"""Addresses of webhooks: the checked address is contacted."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from contextlib import suppress
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest

from tests.workers.notifications.conftest import Receiver
from workers.notifications.address import Refused, checked, is_allowed, reachable, refuse_private
from workers.notifications.webhook import Undelivered, post

PRIVATE = [
    "127.0.0.1",
    "10.0.0.8",
    "172.16.3.1",
    "192.168.1.1",
    "100.64.0.1",
    "169.254.169.254",
    "168.63.129.16",
    "0.0.0.0",
    "224.0.0.1",
    "239.1.1.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "fe80::1",
    "fc00::1",
    "fd00:ec2::254",
    "ff02::1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::1",
    "2001:db8::1",
    "192.0.0.192",
    "192.0.0.9",
    "192.88.99.1",
    "198.18.0.1",
    "203.0.113.9",
    "240.0.0.1",
    "fec0::1",
    "3fff::1",
    "5f00::1",
    "100::1",
    "4000::1",
    "::7f00:1",
    "64:ff9b::a00:1",
    "64:ff9b:1::5db8:d822",
    "2001:0:7f00:1::5db8:d822",
    "2002:5db8:d822::1",
    "2001:20::1",
    "::ffff:192.0.0.192",
]


@pytest.mark.parametrize("address", PRIVATE)
def test_it_refuses_what_is_not_public(address: str) -> None:
    assert not is_allowed(ip_address(address))


@pytest.mark.parametrize(
    "address",
    ["93.184.216.34", "2606:2800:220:1::1", "64:ff9b::5db8:d822", "::ffff:93.184.216.34", "2a00::1", "223.255.255.1"],
)
def test_it_allows_what_is_public(address: str) -> None:
    assert is_allowed(ip_address(address))


def test_it_allows_the_networks_that_an_administrator_names_and_no_others() -> None:
    allowed = [ip_network("10.1.0.0/16")]
    assert is_allowed(ip_address("10.1.2.3"), allowed)
    assert is_allowed(ip_address("::ffff:10.1.2.3"), allowed)
    assert not is_allowed(ip_address("10.2.0.1"), allowed)


@pytest.mark.parametrize(
    "url",
    ["", "lab", "ftp://example.org/", "http://", "http://a:b@example.org/", "http://example.org:99999/", "http://a b/"],
)
def test_it_refuses_what_is_no_address(url: str) -> None:
    with pytest.raises(Refused):
        checked(url)


@pytest.mark.parametrize(
    ("host", "is_advised"), [("10.1.2.3", True), ("169.254.169.254", False), ("::ffff:169.254.169.254", False)]
)
def test_allowing_the_metadata_of_clouds_is_never_advised(host: str, is_advised: bool) -> None:
    with pytest.raises(Refused) as refused:
        refuse_private(host)
    assert ("RANKWIRE_WEBHOOK_NETWORKS" in str(refused.value)) == is_advised


def test_a_name_with_one_private_address_among_public_ones_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: _rows("93.184.216.34", "127.0.0.1"))
    with pytest.raises(Refused, match=r"127\.0\.0\.1, which is not a public address"):
        reachable("example.org", 80, [])


def test_the_address_that_was_judged_is_the_one_connected_to(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A resolver that changes its answer to a private address is asked only once."""
    answers = [_rows("93.184.216.34"), *[_rows("127.0.0.1")] * 5]
    connected: list[str] = []
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answers.pop(0))

    def connect(address: tuple[str, int], *_: Any, **__: Any) -> None:
        connected.append(address[0])
        raise OSError("not in a test")

    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(Undelivered, match=r"rebinding\.example could not be reached"):
        post(f"http://rebinding.example:{receiver.server_port}/", b"{}", secret="s", headers={}, allowed=[])
    assert connected == ["93.184.216.34"]
    assert len(answers) == 5
    assert receiver.messages == []


def test_without_the_setting_loopback_is_refused_before_anything_is_sent(receiver: Receiver) -> None:
    with pytest.raises(Refused, match="RANKWIRE_WEBHOOK_NETWORKS"):
        post(receiver.url, b"{}", secret="s", headers={}, allowed=[])
    assert receiver.messages == []


def test_a_redirect_is_not_followed(receiver: Receiver) -> None:
    receiver.statuses = [307]
    with pytest.raises(Undelivered, match="307: redirects are not followed"):
        post(receiver.url, b"{}", secret="s", headers={}, allowed=[ip_network("127.0.0.0/8")])
    assert len(receiver.messages) == 1


def test_who_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from workers.notifications import webhook

    monkeypatch.setattr(webhook, "_WHOLE_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        with pytest.raises(Undelivered, match="did not answer in time"):
            post(url, b"{}", secret="s", headers={}, allowed=[ip_network("127.0.0.0/8")])


def test_who_spends_the_time_in_the_handshake_is_given_up_after_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from workers.notifications import webhook

    files = {"keyout": tmp_path / "key.pem", "out": tmp_path / "certificate.pem"}
    argv = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "2"]
    argv += [word for name, path in files.items() for word in (f"-{name}", str(path))]
    subprocess.run([*argv, "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    monkeypatch.setattr(webhook, "_WHOLE_S", 0.2)
    monkeypatch.setenv("SSL_CERT_FILE", str(files["out"]))
    cut, received = threading.Event(), list[bytes]()
    true_cut = webhook._Pinned.cut
    monkeypatch.setattr(webhook._Pinned, "cut", lambda connection: (true_cut(connection), cut.set()))

    def delay(listening: socket.socket) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(files["out"], files["keyout"])
        plain, _ = listening.accept()
        assert cut.wait(5)
        with suppress(OSError), context.wrap_socket(plain, server_side=True) as secure:
            received.append(secure.recv(1000))

    with socket.create_server(("127.0.0.1", 0)) as listening:
        receiver = threading.Thread(target=delay, args=[listening])
        receiver.start()
        url = f"https://127.0.0.1:{listening.getsockname()[1]}/"
        with pytest.raises(Undelivered, match="did not answer in time"):
            post(url, b"{}", secret="s", headers={}, allowed=[ip_network("127.0.0.0/8")])
        receiver.join()
    assert not any(received)


def _rows(*addresses: str) -> list[Any]:
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 80)) for address in addresses]
