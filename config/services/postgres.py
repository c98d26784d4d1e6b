"""Embedded PostgreSQL."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import psycopg
from psycopg import sql

from config.services.children import Account, start
from config.services.errors import MissingProgram, ServiceError
from config.services.service import Service
from experiments.common import trees

OLDEST_MAJOR = 14  # Django 5.2's minimum
USER = DATABASE = "rankwire"
DEBIAN_BINARIES = Path("/usr/lib/postgresql")


class Postgres(Service):
    """A PostgreSQL cluster on loopback with a password, of the newest version.

    `durable=False` disables fsync, for tests.
    """

    name = "PostgreSQL"
    pid_file = "postmaster.pid"
    death_signal = signal.SIGINT  # "fast" shutdown
    stop_ladder = ((signal.SIGINT, 20.0), (signal.SIGQUIT, 5.0))

    def __init__(self, directory: Path, *, password: str, log: Path, durable: bool = True) -> None:
        super().__init__(directory, log=log, durable=durable)
        self.password = password

    @property
    def url(self) -> str:
        return f"postgresql://{USER}:{self.password}@127.0.0.1:{self.port}/{DATABASE}"

    def prepare(self) -> None:
        if data_major(self.directory) is None:
            self._initialise()
        self.binaries = binaries_of(self.directory)

    def launch(self, directory_fd: int) -> subprocess.Popen[bytes]:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",  # the path of a socket has at most 107 bytes
            "max_connections": "200",
            "jit": "off",  # compiling takes longer than the queries
            "random_page_cost": "1.1",  # data is in memory or on flash: a few rows come from an index, not by reading a whole table
        }
        if not self.durable:
            settings |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return start(
            [str(self.binaries / "postgres"), "-D", f"/proc/self/fd/{directory_fd}", *options],
            log=self.log,
            death_signal=self.death_signal,
            account=self.account,
            pass_fds=[directory_fd],
        )

    def answers(self) -> bool:
        """Return True if the server accepts connections; create the database."""
        address = self.url.removesuffix(DATABASE) + "postgres"
        try:
            with psycopg.connect(address, connect_timeout=5, autocommit=True) as connection:
                if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE]).fetchone():
                    connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))
        except psycopg.OperationalError as error:
            # Another server may have taken the port of a dying one, with another password.
            if "password authentication failed" in str(error) and not self._ended_within(1.0):
                raise ServiceError(
                    f"the password of {self.directory} is wrong; see docs/how-to/run-the-server.md"
                ) from None
            return False
        return True

    def _ended_within(self, seconds: float) -> bool:
        try:
            return self.process is None or self.process.wait(seconds) is not None
        except subprocess.TimeoutExpired:
            return False

    def _initialise(self) -> None:
        """Run initdb in a temporary directory and rename it."""
        new = self.directory.with_name(f"{self.directory.name}.new")
        trees.remove(new)
        new.mkdir(mode=0o700)
        account = self.account
        directory_fd = os.open(new, os.O_PATH | os.O_DIRECTORY)
        password_fd = os.memfd_create("password")
        try:
            os.write(password_fd, self.password.encode() + b"\n")
            if account:
                os.chown(new, account.uid, account.gid)
                os.fchown(password_fd, account.uid, account.gid)
            self._run_initdb(directory_fd, password_fd, account)
            new.rename(self.directory)  # replaces an empty directory only
        except OSError as error:
            raise ServiceError(f"{self.directory} cannot be initialised: {error.strerror}") from None
        finally:
            os.close(directory_fd)
            os.close(password_fd)

    def _run_initdb(self, directory_fd: int, password_fd: int, account: Account | None) -> None:
        arguments = [f"--pgdata=/proc/self/fd/{directory_fd}", f"--pwfile=/proc/self/fd/{password_fd}"]
        arguments += [f"--username={USER}", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8"]
        process = start(
            [str(find_binaries() / "initdb"), *arguments, *([] if self.durable else ["--no-sync"])],
            log=self.log,
            death_signal=signal.SIGKILL,
            account=account,
            pass_fds=[directory_fd, password_fd],
        )
        if process.wait() != 0:
            raise ServiceError(f"initdb failed; see {self.log}")


def data_major(directory: Path) -> int | None:
    """Return the major version of the data, or None. Raise ServiceError."""
    try:
        text = (directory / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ServiceError(f"{directory}/PG_VERSION cannot be read: {error.strerror}") from None
    if not text.isdigit():
        raise ServiceError(
            f"{directory}/PG_VERSION has {text[:20]!r}, which is not a version of PostgreSQL; restore a backup"
        )
    return int(text)


def binaries_of(directory: Path) -> Path:
    """Return the programs of the data's version. Raise ServiceError."""
    major, installed = data_major(directory), installed_binaries()
    if major in installed:
        return installed[major]
    newest = f"is not installed, only {max(installed)}" if installed else "is not installed"
    raise ServiceError(
        f"the data in {directory} were made by PostgreSQL {major}, which {newest}: install the package postgresql-{major}, "
        "or restore a backup (docs/how-to/run-the-server.md, Another PostgreSQL version)"
    )


def installed_binaries() -> dict[int, Path]:
    """Return directories of programs by major version; Debian's are not in PATH."""
    by_version = {path.parent.parent.name: path.parent for path in DEBIAN_BINARIES.glob("*/bin/postgres")}
    if not by_version and (program := shutil.which("postgres")):
        answer = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
        by_version = {answer.split()[2].split(".")[0]: Path(program).resolve().parent}
    return {int(name): path for name, path in by_version.items() if name.isdigit() and int(name) >= OLDEST_MAJOR}


def find_binaries() -> Path:
    """Return the programs of the newest installed version. Raise MissingProgram."""
    if not (installed := installed_binaries()):
        raise MissingProgram(f"PostgreSQL {OLDEST_MAJOR} or newer", "postgresql")
    return installed[max(installed)]
