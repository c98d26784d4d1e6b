"""The client: one method for each thing that a program asks of a server."""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import stat
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self
from urllib.parse import quote

import httpx

from rankwire_client.errors import NotMade, NotReached, Refused, TimeLimit

ATTEMPTS = 5
"""How often a request is sent before the server counts as not reached."""
LONGEST_PAUSE_S = 30.0
PAGE = 200
_SHA256: Final = re.compile(r'"([0-9a-f]{64})"')
_NOT_NOW = (502, 503, 504)
UNFINISHED = ("waiting", "running")
_KINDS: Final = {
    ".zip": "application/zip",
    ".yaml": "application/yaml",
    ".yml": "application/yaml",
    ".json": "application/json",
}

Specification = str | Mapping[str, Any]
Form = Literal["csv", "json", "jsonl", "parquet"]
Rows = Literal["configurations", "trials", "measurements"]


class Part:
    """A file on its way here: written beside its place under another name, and put there only when it is whole.

    Raises OSError where nothing can be written.
    """

    def __init__(self, target: Path) -> None:
        if target.is_dir():
            raise IsADirectoryError(f"{target} is a directory: name a file")
        self.target = target
        self._etag = ""
        number, name = tempfile.mkstemp(prefix=".rankwire-", suffix=".part", dir=target.parent)
        os.close(number)
        self.path = Path(name)

    def headers(self) -> dict[str, str]:
        """What asks for the file, or for what is missing of it. Errors come as JSON all the same."""
        here = self.path.stat().st_size
        rest = {"Range": f"bytes={here}-", "If-Range": self._etag} if here and self._etag else {}
        return {"Accept": "*/*", **rest}

    def take(self, answer: httpx.Response) -> None:
        """Write what ``answer`` brings, as it comes. Raises httpx.TransportError where it breaks off."""
        goes_on = answer.status_code == 206
        self._etag = answer.headers.get("ETag", "")
        with self.path.open("ab" if goes_on else "wb") as stream:
            for piece in answer.iter_bytes():  # pieces as they come: what is here already need not come again
                stream.write(piece)

    def finish(self) -> Path:
        """Put it in its place, with the access that a new file of this person has.

        Raises NotMade where the content is not what the server has the hash of.
        """
        hashed = _SHA256.fullmatch(self._etag)
        if hashed is not None:
            with self.path.open("rb") as stream:
                if hashlib.file_digest(stream, "sha256").hexdigest() != hashed[1]:
                    raise NotMade(f"{self.target.name} did not arrive as the server has it: its hash is another one")
        mask = os.umask(0)
        os.umask(mask)
        self.path.chmod(0o666 & ~mask)
        return self.path.replace(self.target)

    def abandon(self) -> None:
        """Remove it where it was not finished."""
        self.path.unlink(missing_ok=True)


class Client:
    """A server at ``url``, asked with ``token``; without them, RANKWIRE_URL and RANKWIRE_TOKEN of the environment, and at
    last the token that a person keeps in a file: ``RANKWIRE_TOKEN_FILE``, otherwise ``~/.config/rankwire/token``.

    ``timeout_s`` is how long one request may stay without an answer. ``transport`` replaces the network.
    Raises ValueError where address or token are missing.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        timeout_s: float = 60.0,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        url, token = url or os.environ.get("RANKWIRE_URL"), token or os.environ.get("RANKWIRE_TOKEN") or stored_token()
        if not url or not url.startswith(("http://", "https://")):
            raise ValueError("the address of the server is missing: set RANKWIRE_URL, as http://127.0.0.1:8000")
        if not token or not token.isascii() or not token.isprintable():
            raise ValueError("the token is missing or has characters that no token has: set RANKWIRE_TOKEN")
        self._sleep = sleep
        self._http = httpx.Client(
            base_url=url.rstrip("/") + "/api/v1/",
            headers={"Authorization": f"Bearer {token}", "Accept": "application/json"},
            timeout=timeout_s,
            transport=transport,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def submit(self, specification: Specification, *, project: str | None = None) -> dict[str, Any]:
        """Queue an experiment, YAML as text or a mapping, and return it as the server tells it.

        However often it has to be sent, it is queued once: an idempotency key goes with it. Raises Refused, NotReached.
        """
        return self._send(specification, "experiments/", project, {"Idempotency-Key": uuid.uuid4().hex})

    def validate(self, specification: Specification, *, project: str | None = None) -> dict[str, Any]:
        """Return what a specification would do: trials, configurations, expected seconds, notes. Nothing is stored.

        Raises Refused with what submitting it would be refused for, NotReached.
        """
        return self._send(specification, "validate/", project, {})

    def experiment(self, slug: str) -> dict[str, Any]:
        """Return one experiment with its specification, status and the number of its trials in each state."""
        return self._ask("GET", f"experiments/{_part(slug)}/")

    def experiments(self, **filters: Any) -> Iterator[dict[str, Any]]:
        """Yield experiments, newest first, a page at a time; filters as docs/rest.md names them."""
        return self._all("experiments/", filters)

    def trials(self, **filters: Any) -> Iterator[dict[str, Any]]:
        """Yield trials, a page at a time; filters as docs/rest.md names them."""
        return self._all("trials/", filters)

    def trial(self, number: int) -> dict[str, Any]:
        """Return one trial with everything measured; its files are ``artifacts``."""
        return self._ask("GET", f"trials/{int(number)}/")

    def result(self, slug: str) -> dict[str, Any]:
        """Return an experiment's answer and its current trials with everything measured."""
        return self._ask("GET", f"experiments/{_part(slug)}/result/")

    def wait(
        self,
        slug: str,
        *,
        time_limit_s: float = 86_400.0,
        progress: Callable[[dict[str, Any]], None] | None = None,
    ) -> dict[str, Any]:
        """Return the experiment once none of its trials is left to run; ``progress`` is told each state of it.

        It is asked for after 0.5 s, then ever more rarely, at last every 15 s. Raises TimeLimit, Refused, NotReached.
        """
        for told in self._polled(f"experiments/{_part(slug)}/", time_limit_s):
            if progress is not None:
                progress(told)
            if told["status"] not in UNFINISHED:
                return told
        raise TimeLimit(f"{slug} was not over after {time_limit_s:g} s: {told['status']}")

    def table(self, path: str | Path, *, form: Form = "csv", rows: Rows = "trials", **filters: Any) -> Path:
        """Store a table of results in a file, as it comes, and return its path.

        A row is a trial with every parameter and everything measured, a configuration with medians, or one measurement.
        Filters are those of `explore/export/` in docs/rest.md, such as ``experiment``, ``where`` and ``every``. The file
        has its name only once it is whole. A large table is made in the background first.
        Raises OSError, NotMade, TimeLimit, Refused, NotReached.
        """
        every = {"every": str(filters.pop("every")).lower()} if "every" in filters else {}
        return self._save(Path(path), "GET", f"explore/export/{form}/", params={**filters, **every, "rows": rows})

    def frame(self, *, library: Literal["polars", "pandas"] = "polars", rows: Rows = "trials", **filters: Any) -> Any:
        """Return the table of `table` as a frame of polars or of pandas, of which one has to be installed.

        Raises ImportError besides what `table` raises.
        """
        read = importlib.import_module(library).read_parquet  # before anything is asked: it may not be there
        with tempfile.TemporaryDirectory(prefix="rankwire-") as directory:
            return read(self.table(Path(directory) / "table.parquet", form="parquet", rows=rows, **filters))

    def charts(self, of: str | int) -> list[dict[str, Any]]:
        """Return name, title, section and views of each chart of an experiment (its slug) or a trial (its number)."""
        listed: Any = self._ask("GET", f"{_place(of)}/charts/")
        return list(listed)

    def chart(self, of: str | int, name: str, path: str | Path, *, view: str | None = None) -> Path:
        """Store the table behind a chart, as CSV, and return its path: of the view that it opens with, or of another.

        Raises OSError, Refused, NotReached.
        """
        params = {"form": "csv", **({"view": view} if view else {})}
        return self._save(Path(path), "GET", f"{_place(of)}/charts/{_part(name)}/", params=params)

    def download(self, trial: int, name: str, path: str | Path) -> Path:
        """Store a file of a trial, such as its capture, and return its path.

        What breaks off goes on where it ended; the file has its name only when its hash is the one that the server keeps.
        Raises OSError, NotMade, Refused, NotReached.
        """
        return self._save(Path(path), "GET", f"trials/{int(trial)}/artifacts/{quote(name)}/")

    def bundle(
        self,
        of: str | Sequence[str],
        path: str | Path,
        *,
        captures: Literal["all", "headers", "none"] = "all",
        anonymise: bool = False,
        licence: str | None = None,
    ) -> Path:
        """Have a bundle made of an experiment (its slug), or of several and of trials (``e:SLUG``, ``t:NUMBER``), and store it.

        ``captures`` may be cut to the headers of their packets; ``anonymise`` then replaces addresses, in texts too.
        Raises OSError, NotMade, TimeLimit, Refused, NotReached.
        """
        tokens = [f"e:{_part(of)}"] if isinstance(of, str) else list(of)
        wanted = {"of": tokens, "captures": captures, "anonymise": anonymise}
        wanted |= {"licence": licence} if licence else {}
        return self._save(Path(path), "POST", "bundles/", json=wanted)

    def import_(self, path: str | Path, *, project: str | None = None, dry_run: bool = False) -> dict[str, Any]:
        """Bring in a bundle (.zip), a description (.yaml) or another tool's report (.json); return what came of it.

        With ``dry_run`` nothing is stored. What is there already is not doubled. Raises OSError, ValueError, Refused, NotReached.
        """
        kind = _KINDS.get(Path(path).suffix.lower())
        if kind is None:
            raise ValueError(f"{path}: what is imported ends in {', '.join(_KINDS)}")
        params = {"dry_run": str(dry_run).lower(), **({"project": project} if project else {})}
        return self._ask("POST", "imports/", body=Path(path), params=params, headers={"Content-Type": kind})

    def reports(self, **filters: Any) -> Iterator[dict[str, Any]]:
        """Yield reports, newest first, a page at a time; filters as docs/rest.md names them."""
        return self._all("reports/", filters)

    def report(self, number: int, *, version: int | None = None) -> dict[str, Any]:
        """Return a report with its Markdown, of an earlier version where one is named."""
        return self._ask("GET", f"reports/{int(number)}/", params={} if version is None else {"version": version})

    def _save(self, target: Path, method: str, address: str, **request: Any) -> Path:
        """Store what is answered; where that is a task, what the task makes."""
        part = Part(target)
        try:
            answer = self._answer(method, address, part=part, **request)
            if answer.status_code == 202:
                answer = self._answer("GET", f"tasks/{self._made(int(answer.json()['id']))}/file/", part=part)
            if not answer.is_success:
                raise Refused.by(answer)
            return part.finish()
        finally:
            part.abandon()

    def _made(self, number: int, *, time_limit_s: float = 3600.0) -> int:
        """Wait for a task in the background and return its number."""
        for task in self._polled(f"tasks/{number}/", time_limit_s):
            if task["state"] not in UNFINISHED:
                break
        else:
            raise TimeLimit(f"{task['title']} was not made after {time_limit_s:g} s")
        if task["state"] != "done":
            raise NotMade(f"{task['title']} was not made: {task['message']}")
        return number

    def _polled(self, address: str, time_limit_s: float) -> Iterator[dict[str, Any]]:
        """Yield what is at an address after ever longer pauses, until the next one would end too late."""
        ends, pause_s = time.monotonic() + time_limit_s, 0.5
        yield self._ask("GET", address)
        while time.monotonic() + pause_s <= ends:
            self._sleep(pause_s)
            pause_s = min(1.5 * pause_s, 15.0)
            yield self._ask("GET", address)

    def _send(
        self, specification: Specification, address: str, project: str | None, headers: dict[str, str]
    ) -> dict[str, Any]:
        params = {"project": project} if project else {}
        if isinstance(specification, str):
            headers = {**headers, "Content-Type": "application/yaml"}
            return self._ask("POST", address, content=specification.encode(), params=params, headers=headers)
        return self._ask("POST", address, json=dict(specification), params=params, headers=headers)

    def _all(self, address: str, filters: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        cursor = ""
        while True:
            page = self._ask("GET", address, params={**filters, "limit": PAGE, "cursor": cursor})
            yield from page["results"]
            if not page["next"]:
                return
            cursor = httpx.URL(page["next"]).params["cursor"]

    def _ask(self, method: str, address: str, **request: Any) -> dict[str, Any]:
        answer = self._answer(method, address, **request)
        if not answer.is_success:
            raise Refused.by(answer)
        try:
            told: dict[str, Any] = answer.json()
        except ValueError as error:
            raise NotReached(f"what answers at {self._http.base_url} is not Rankwire") from error
        return told

    def _answer(
        self,
        method: str,
        address: str,
        *,
        part: Part | None = None,
        body: Path | None = None,
        headers: Mapping[str, str] | None = None,
        **request: Any,
    ) -> httpx.Response:
        """Send it until there is an answer: each request of this client may be sent again without harm.

        A file goes to ``part``, after a cut from where it ended; ``body`` is a file that is sent.
        """
        why = ""
        for attempt in range(ATTEMPTS):
            pause_s = min(2.0**attempt, LONGEST_PAUSE_S)
            try:
                sent = {**(headers or {}), **(part.headers() if part is not None else {})}
                with (
                    nullcontext() if body is None else body.open("rb") as content,
                    self._http.stream(
                        method, address, headers=sent, **({"content": content} if content else {}), **request
                    ) as answer,
                ):
                    if part is not None and answer.status_code in (200, 206):
                        part.take(answer)
                    else:
                        answer.read()
            except httpx.TransportError as error:
                why = str(error) or type(error).__name__
            else:
                if answer.status_code not in _NOT_NOW:
                    return answer
                why = f"{answer.status_code} {answer.reason_phrase}"
                after = answer.headers.get("Retry-After", "")
                pause_s = min(float(after), LONGEST_PAUSE_S) if after.isdecimal() else pause_s
            if attempt + 1 < ATTEMPTS:
                self._sleep(pause_s)
        raise NotReached(f"{self._http.base_url} was not reached in {ATTEMPTS} attempts: {why}")


def _place(of: str | int) -> str:
    """Where the parts of an experiment or of a trial are asked for."""
    return f"trials/{of}" if isinstance(of, int) else f"experiments/{_part(of)}"


def _part(slug: str) -> str:
    """Return a slug as one part of an address. Raises ValueError for what cannot be one."""
    if not slug or not all(letter.isalnum() or letter in "-_" for letter in slug):
        raise ValueError(f"{slug!r} is not a short name (slug)")
    return slug


def stored_token() -> str | None:
    """Return the token; None where there is no such file. Raises ValueError where others can read it, OSError where it is none."""
    named = os.environ.get("RANKWIRE_TOKEN_FILE")
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    path = Path(named) if named else Path(home) / "rankwire" / "token"
    if not named and not path.is_file():
        return None
    if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise ValueError(f"others can read the token in {path}: chmod 600 {path}")
    return path.read_text(encoding="utf-8").strip()
