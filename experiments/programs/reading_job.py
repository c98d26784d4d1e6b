"""One reading job: fetches events page by page and reports times and bytes.

The first line of standard input holds its order, as JSON; it answers ``ready`` when it is connected and starts with the next line.
It is a process of its own, because the study asks for the processor time of a job.
"""

from __future__ import annotations

import json
import resource
import sys
import time

import psycopg2  # type: ignore[import-untyped]


def compute(seconds: float) -> None:
    """Use that much CPU time, as an analysis of an event does."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(1000))  # a question for the time is a system call: between two of them the time is the user's


def main() -> None:
    """Read the order, connect, wait for the start, read, report."""
    order = json.loads(sys.stdin.readline())
    with psycopg2.connect(**order["server"]) as connection, connection.cursor() as cursor:
        cursor.execute("PREPARE page (integer) AS SELECT content FROM pages WHERE number = $1")
        print("ready", flush=True)
        sys.stdin.readline()
        before, started = resource.getrusage(resource.RUSAGE_SELF), time.monotonic()
        read_bytes = 0
        for event in range(order["events"]):
            first = order["first_page"] + event * order["pages_per_event"]
            for page in range(first, first + order["pages_per_event"]):
                cursor.execute("EXECUTE page (%s)", [page % order["pages_in_all"]])
                read_bytes += len(cursor.fetchone()[0])
            if order["work_s"]:
                compute(order["work_s"])
        wall_s, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_SELF)
    report = {
        "wall_s": wall_s,
        "user_s": after.ru_utime - before.ru_utime,
        "system_s": after.ru_stime - before.ru_stime,
        "bytes": read_bytes,
    }
    print(json.dumps(report), flush=True)
    sys.stdin.readline()  # the CPU time of its end is no part of the reading


if __name__ == "__main__":
    main()
