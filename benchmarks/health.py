"""Latency of `/healthz` on a running installation during many sign-ins.

    python -m benchmarks.health http://127.0.0.1:8000 [--people 50] [--seconds 15]

Each of so many people tries one wrong password after another, each for a name of their own (a name is locked after ten). A bystander
asks for the health ten times a second. Exit status 1 when an answer took longer than a second.
"""

from __future__ import annotations

import argparse
import http.client
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
    parser.add_argument("--seconds", type=float, default=15.0)
    options = parser.parse_args()
    place = urlsplit(options.address)
    answer(place.netloc, "GET", "/healthz")
    alone = asked(place.netloc, time.monotonic() + 3)
    until = time.monotonic() + options.seconds
    # Of a process of their own, so that the bystander's clock runs on while fifty answers are read.
    with ProcessPoolExecutor(1) as apart:
        answers = apart.submit(crowd, place.netloc, options.people, until)
        beside = asked(place.netloc, until)
        statuses = answers.result()
    reported = ", ".join(f"{count} times {status}" for status, count in sorted(statuses.items()))
    print(f"sign-ins of {options.people} people in {options.seconds:.0f} s: {reported}")
    for name, waits in (("alone", alone), ("beside them", beside)):
        print(
            f"/healthz {name}: {len(waits)} answers, median {1000 * statistics.median(waits):.0f} ms, "
            f"95 % within {1000 * statistics.quantiles(waits, n=20)[-1]:.0f} ms, longest {1000 * max(waits):.0f} ms"
        )
    return int(max(beside) > LIMIT_S)


def asked(place: str, until: float) -> list[float]:
    """Seconds of each answer of `/healthz`."""
    waits = []
    while time.monotonic() < until:
        began = time.monotonic()
        status = answer(place, "GET", "/healthz")
        waits.append(time.monotonic() - began)
        if status != 200:
            raise SystemExit(f"/healthz answers {status}")
        time.sleep(0.1)
    return waits


def crowd(place: str, people: int, until: float) -> Counter[int]:
    """Return the number of answers by status."""
    statuses: Counter[int] = Counter()
    threads = [threading.Thread(target=sign_in, args=(place, each, until, statuses)) for each in range(people)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return statuses


def sign_in(place: str, number: int, until: float, statuses: Counter[int]) -> None:
    token, attempt = "a" * 32, 0
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Cookie": f"csrftoken={token}"}
    while time.monotonic() < until:
        attempt += 1
        form = f"username=nobody-{number}-{attempt}&password=wrong&csrfmiddlewaretoken={token}"
        statuses[answer(place, "POST", "/sign-in/", form, headers)] += 1


def answer(place: str, method: str, path: str, body: str = "", headers: dict[str, str] | None = None) -> int:
    connection = http.client.HTTPConnection(place, timeout=60)
    try:
        connection.request(method, path, body or None, headers or {})
        response = connection.getresponse()
        response.read()
        return response.status
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(main())
