"""Client of a Rankwire server: one method per request."""

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
from typing import IO, Any, Final, Literal, Self
from urllib.parse import quote

import httpx

from rankwire_client.errors import NotMade, NotReached, Refused, TimeLimit

ATTEMPTS = 5
"""Attempts per request before NotReached is raised."""
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
    """A download in a temporary file, renamed when it is complete. Raises OSError."""

    def __init__(self, target: Path) -> None:
        if target.is_dir():
            raise IsADirectoryError(f"{target} is a directory; name a file")
        self.target = target
        self._etag = ""
        number, name = tempfile.mkstemp(prefix=".rankwire-", suffix=".part", dir=target.parent)
        os.close(number)
        self.path = Path(name)

    def headers(self) -> dict[str, str]:
        """Return request headers for the file or its missing rest."""
        size = self.path.stat().st_size
        rest = {"Range": f"bytes={size}-", "If-Range": self._etag} if size and self._etag else {}
        return {"Accept": "*/*", **rest}

    def write(self, answer: httpx.Response) -> None:
        """Write the body of ``answer`` as it arrives. Raises httpx.TransportError."""
        is_rest = answer.status_code == 206
        self._etag = answer.headers.get("ETag", "")
        with self.path.open("ab" if is_rest else "wb") as stream:
            for piece in answer.iter_bytes():  # written at once, to resume after them
                stream.write(piece)

    def finish(self) -> Path:
        """Verify the hash and rename the file to its target. Raises NotMade."""
        hashed = _SHA256.fullmatch(self._etag)
        if hashed is not None:
            with self.path.open("rb") as stream:
                if hashlib.file_digest(stream, "sha256").hexdigest() != hashed[1]:
                    raise NotMade(f"{self.target.name} arrived damaged: its hash differs from the server's")
        mask = os.umask(0)
        os.umask(mask)
        self.path.chmod(0o666 & ~mask)
        return self.path.replace(self.target)

    def abandon(self) -> None:
        """Remove an incomplete file."""
        self.path.unlink(missing_ok=True)


class Client:
    """Client of the server at ``url``, with an API ``token``.

    Defaults: RANKWIRE_URL and RANKWIRE_TOKEN, or the token in the file RANKWIRE_TOKEN_FILE or ~/.config/rankwire/token.
    ``timeout_s`` limits the wait for an answer; ``transport`` replaces the network. Raises ValueError without URL or token.
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
            raise ValueError("the URL of the server is missing: set RANKWIRE_URL, such as http://127.0.0.1:8000")
        if not token or not token.isascii() or not token.isprintable():
            raise ValueError("the token is missing or has invalid characters: set RANKWIRE_TOKEN")
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
        """Queue an experiment, as YAML text or a mapping, and return it.

        An idempotency key ensures that repeated attempts queue it once. Raises Refused, NotReached.
        """
        return self._send(specification, "experiments/", project, {"Idempotency-Key": uuid.uuid4().hex})

    def validate(self, specification: Specification, *, project: str | None = None) -> dict[str, Any]:
        """Return trials, configurations, expected seconds and notes; store nothing.

        Raises Refused with the problems of a submission, NotReached.
        """
        return self._send(specification, "validate/", project, {})

    def experiment(self, slug: str) -> dict[str, Any]:
        """Return an experiment with specification, status and number of trials per state."""
        return self._ask("GET", f"experiments/{_part(slug)}/")

    def experiments(self, **filters: Any) -> Iterator[dict[str, Any]]:
        """Yield experiments, newest first; filters as in docs/reference/rest.md."""
        return self._all("experiments/", filters)

    def trials(self, **filters: Any) -> Iterator[dict[str, Any]]:
        """Yield trials; filters as in docs/reference/rest-lists.md.

        ``metrics="elapsed_s,packets"`` adds their values to the rows, ``ordering="-metric:elapsed_s"`` sorts by one.
        """
        return self._all("trials/", filters)

    def configurations(self, **filters: Any) -> Iterator[dict[str, Any]]:
        """Yield configurations.

        Filters, ``metrics`` (as medians) and ``ordering`` are those of trials.
        """
        return self._all("configurations/", filters)

    def trial(self, number: int) -> dict[str, Any]:
        """Return a trial with all measurements; its files are ``artifacts``."""
        return self._ask("GET", f"trials/{int(number)}/")

    def result(self, slug: str) -> dict[str, Any]:
        """Return an experiment's answer and its current trials with all measurements."""
        return self._ask("GET", f"experiments/{_part(slug)}/result/")

    def rounds(self, slug: str) -> list[dict[str, Any]]:
        """Return the rounds of an experiment with a goal, each with its decision."""
        rounds: Any = self._ask("GET", f"experiments/{_part(slug)}/rounds/")
        return list(rounds)

    def wait(
        self,
        slug: str,
        *,
        time_limit_s: float = 86_400.0,
        progress: Callable[[dict[str, Any]], None] | None = None,
    ) -> dict[str, Any]:
        """Wait for the last trial and return the experiment; pass states to ``progress``.

        Polls after 0.5 s, then with growing pauses of up to 15 s. Raises TimeLimit, Refused, NotReached.
        """
        for experiment in self._polled(f"experiments/{_part(slug)}/", time_limit_s):
            if progress is not None:
                progress(experiment)
            if experiment["status"] not in UNFINISHED:
                return experiment
        raise TimeLimit(f"{slug} was not finished after {time_limit_s:g} s: {experiment['status']}")

    def table(self, path: str | Path, *, form: Form = "csv", rows: Rows = "trials", **filters: Any) -> Path:
        """Download a table of results and return its path.

        A row is a trial with all parameters and measurements, a configuration with medians, or one measurement. Filters
        are those of `explore/export/` in docs/reference/rest.md, such as ``experiment``, ``where`` and ``every``. The server makes
        large tables in the background. Raises OSError, NotMade, TimeLimit, Refused, NotReached.
        """
        every = {"every": str(filters.pop("every")).lower()} if "every" in filters else {}
        return self._save(Path(path), "GET", f"explore/export/{form}/", params={**filters, **every, "rows": rows})

    def frame(self, *, library: Literal["polars", "pandas"] = "polars", rows: Rows = "trials", **filters: Any) -> Any:
        """Return `table` as a frame of polars or pandas. Raises ImportError too."""
        read = importlib.import_module(library).read_parquet  # raises before the request
        with tempfile.TemporaryDirectory(prefix="rankwire-") as directory:
            return read(self.table(Path(directory) / "table.parquet", form="parquet", rows=rows, **filters))

    def charts(self, of: str | int) -> list[dict[str, Any]]:
        """Return the charts of an experiment (slug) or trial (number)."""
        charts: Any = self._ask("GET", f"{_path(of)}/charts/")
        return list(charts)

    def chart(self, of: str | int, name: str, path: str | Path, *, view: str | None = None) -> Path:
        """Download the table behind a chart. Raises OSError, Refused, NotReached."""
        params = {"form": "csv", **({"view": view} if view else {})}
        return self._save(Path(path), "GET", f"{_path(of)}/charts/{_part(name)}/", params=params)

    def download(self, trial: int, name: str, path: str | Path) -> Path:
        """Download an artifact of a trial, such as its capture, and return its path.

        Resumes interrupted downloads and verifies the hash. Raises OSError, NotMade, Refused, NotReached.
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
        """Download a bundle of a slug, or of several ``e:SLUG`` and ``t:NUMBER``.

        ``captures="headers"`` keeps packet headers only; ``anonymise`` then replaces addresses in captures and texts.
        Raises OSError, NotMade, TimeLimit, Refused, NotReached.
        """
        tokens = [f"e:{_part(of)}"] if isinstance(of, str) else list(of)
        options: dict[str, Any] = {"of": tokens, "captures": captures, "anonymise": anonymise}
        options |= {"licence": licence} if licence else {}
        return self._save(Path(path), "POST", "bundles/", json=options)

    def import_(self, path: str | Path, *, project: str | None = None, dry_run: bool = False) -> dict[str, Any]:
        """Import a bundle (.zip), description (.yaml) or report of a tool (.json).

        ``dry_run`` stores nothing. Existing results are not duplicated. Raises OSError, ValueError, Refused, NotReached.
        """
        kind = _KINDS.get(Path(path).suffix.lower())
        if kind is None:
            raise ValueError(f"{path}: the name of an import must end in {', '.join(_KINDS)}")
        params = {"dry_run": str(dry_run).lower(), **({"project": project} if project else {})}
        return self._ask("POST", "imports/", body=Path(path), params=params, headers={"Content-Type": kind})

    def reports(self, **filters: Any) -> Iterator[dict[str, Any]]:
        """Yield reports, newest first; filters as in docs/reference/rest.md."""
        return self._all("reports/", filters)

    def report(self, number: int, *, version: int | None = None) -> dict[str, Any]:
        """Return a report with its Markdown, optionally of an earlier version."""
        return self._ask("GET", f"reports/{int(number)}/", params={} if version is None else {"version": version})

    def _save(self, target: Path, method: str, address: str, **request: Any) -> Path:
        """Download the answer, or the file of a background task."""
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
        """Wait for a background task and return its number."""
        for task in self._polled(f"tasks/{number}/", time_limit_s):
            if task["state"] not in UNFINISHED:
                break
        else:
            raise TimeLimit(f"{task['title']} was not finished after {time_limit_s:g} s")
        if task["state"] != "done":
            raise NotMade(f"{task['title']} was not made: {task['message']}")
        return number

    def _polled(self, address: str, time_limit_s: float) -> Iterator[dict[str, Any]]:
        """Yield answers of an address with growing pauses, within the time limit."""
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
            body: dict[str, Any] = answer.json()
        except ValueError as error:
            raise NotReached(f"the server at {self._http.base_url} is not Rankwire") from error
        return body

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
        """Send a request, repeatedly if necessary: all requests are idempotent.

        ``part`` receives a file, resumed after an interruption; ``body`` is a file to upload.
        """
        reason = ""
        for attempt in range(ATTEMPTS):
            pause_s = min(2.0**attempt, LONGEST_PAUSE_S)
            try:
                all_headers = {**(headers or {}), **(part.headers() if part is not None else {})}
                with (
                    nullcontext() if body is None else body.open("rb") as content,
                    self._http.stream(method, address, headers=all_headers, **_with(content, request)) as answer,
                ):
                    if part is not None and answer.status_code in (200, 206):
                        part.write(answer)
                    else:
                        answer.read()
            except httpx.TransportError as error:
                reason = str(error) or type(error).__name__
            else:
                if answer.status_code not in _NOT_NOW:
                    return answer
                reason = f"{answer.status_code} {answer.reason_phrase}"
                after = answer.headers.get("Retry-After", "")
                pause_s = min(float(after), LONGEST_PAUSE_S) if after.isdecimal() else pause_s
            if attempt + 1 < ATTEMPTS:
                self._sleep(pause_s)
        raise NotReached(f"{self._http.base_url} was not reached in {ATTEMPTS} attempts: {reason}")


def _with(content: IO[bytes] | None, request: dict[str, Any]) -> dict[str, Any]:
    return request if content is None else {**request, "content": content}


def _path(of: str | int) -> str:
    """Return the path of an experiment (slug) or trial (number)."""
    return f"trials/{of}" if isinstance(of, int) else f"experiments/{_part(of)}"


def _part(slug: str) -> str:
    """Return a valid slug. Raises ValueError."""
    if not slug or not all(letter.isalnum() or letter in "-_" for letter in slug):
        raise ValueError(f"{slug!r} is not a short name (slug)")
    return slug


def stored_token() -> str | None:
    """Return the token of the file, or None. Raises OSError, ValueError."""
    configured = os.environ.get("RANKWIRE_TOKEN_FILE")
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    path = Path(configured) if configured else Path(home) / "rankwire" / "token"
    if not configured and not path.is_file():
        return None
    if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise ValueError(f"others can read the token in {path}: chmod 600 {path}")
    return path.read_text(encoding="utf-8").strip()
