"""Time of `/healthz` of a running installation under load.

    python -m benchmarks.health http://127.0.0.1:8000 [--people 50] [--slow 500] [--bodies 4] [--seconds 15]

So many people try one wrong password after another, each for another name (a name is locked after ten). Slow connections send nothing,
a byte a second of their headers, or of a body; large bodies are 400 MB each. A bystander asks for the health ten times a second. Exit
status 1 if an answer took longer than a second.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import socket
import statistics
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from urllib.parse import urlsplit

LIMIT_S = 1.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("address")
    parser.add_argument("--people", type=int, default=50)
    parser.add_argument("--slow", type=int, default=500)
    parser.add_argument("--bodies", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=15.0)
    options = parser.parse_args()
    address = urlsplit(options.address)
    answer(address.netloc, "GET", "/healthz")
    alone = waits_of(address.netloc, time.monotonic() + 3)
    until = time.monotonic() + options.seconds
    # Of a process of their own, so that the bystander's clock runs on while fifty answers are read.
    with ProcessPoolExecutor(1) as apart:
        answers = apart.submit(crowd, address.netloc, options.people, options.slow, options.bodies, until)
        loaded = waits_of(address.netloc, until)
        statuses = answers.result()
    reported = ", ".join(f"{count} times {status}" for status, count in sorted(statuses.items()))
    print(
        f"{options.people} people sign in, {options.slow} connections are slow, {options.bodies} send large bodies; "
        f"answers in {options.seconds:.0f} s: {reported}"
    )
    for name, waits in (("alone", alone), ("beside them", loaded)):
        print(
            f"/healthz {name}: {len(waits)} answers, median {1000 * statistics.median(waits):.0f} ms, "
            f"95 % within {1000 * statistics.quantiles(waits, n=20)[-1]:.0f} ms, longest {1000 * max(waits):.0f} ms"
        )
    return int(max(loaded) > LIMIT_S)


def waits_of(netloc: str, until: float) -> list[float]:
    """Seconds of each answer of `/healthz`."""
    waits = []
    while time.monotonic() < until:
        began = time.monotonic()
        status = answer(netloc, "GET", "/healthz")
        waits.append(time.monotonic() - began)
        if status != 200:
            raise SystemExit(f"/healthz answers {status}")
        time.sleep(0.1)
    return waits


def crowd(netloc: str, people: int, slow: int, bodies: int, until: float) -> Counter[int]:
    """Return the number of answers by status."""
    statuses: Counter[int] = Counter()
    threads = [threading.Thread(target=sign_in, args=(netloc, number, until, statuses)) for number in range(people)]
    threads += [threading.Thread(target=send_body, args=(netloc, until, statuses)) for _ in range(bodies)]
    threads.append(threading.Thread(target=send_slowly, args=(netloc, slow, until)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return statuses


def sign_in(netloc: str, number: int, until: float, statuses: Counter[int]) -> None:
    token, attempt = "a" * 32, 0
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": f"csrftoken={token}"}
    while time.monotonic() < until:
        attempt += 1
        form = f"username=nobody-{number}-{attempt}&password=wrong&csrfmiddlewaretoken={token}"
        statuses[answer(netloc, "POST", "/sign-in/", form, headers)] += 1


def send_body(netloc: str, until: float, statuses: Counter[int]) -> None:
    """Send bodies beyond the limit, as fast as the server reads them."""
    host, _, port = netloc.partition(":")
    while time.monotonic() < until:
        with socket.create_connection((host, int(port or 80)), timeout=60) as connection:
            connection.sendall(b"POST /sign-in/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 400000000\r\n\r\n")
            with contextlib.suppress(OSError):
                for _ in range(400):
                    connection.sendall(b"x" * 1_000_000)
            with contextlib.suppress(OSError):
                statuses[int(connection.recv(12)[9:] or 0)] += 1


def send_slowly(netloc: str, count: int, until: float) -> None:
    """Hold connections open: each thing that the server waits for."""
    host, _, port = netloc.partition(":")
    texts = (
        b"",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
        b"POST /sign-in/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000000\r\n\r\n",
    )
    connections = [socket.create_connection((host, int(port or 80)), timeout=60) for _ in range(count)]
    for number, connection in enumerate(connections):
        connection.sendall(texts[number % 3])
    while time.monotonic() < until:
        for number, connection in enumerate(connections):
            if number % 3:
                with contextlib.suppress(OSError):
                    connection.sendall(b"a")
        time.sleep(1)


def answer(netloc: str, method: str, path: str, body: str = "", headers: dict[str, str] | None = None) -> int:
    connection = http.client.HTTPConnection(netloc, timeout=60)
    try:
        connection.request(method, path, body or None, headers or {})
        response = connection.getresponse()
        response.read()
        return response.status
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(main())
