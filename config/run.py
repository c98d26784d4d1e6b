"""`script/run` and `script/manage`: Django commands with the embedded services."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from config.services.children import start, stop
from config.services.errors import ServiceError
from config.services.lease import Installation, embedded_services
from config.supervisor import (
    WORKER,
    Interrupted,
    Supervisor,
    child_environment,
    interrupt_on_stop_signals,
    launch,
    load,
    load_libraries,
    manage,
    set_up,
)
from manage import main as run_command

USAGE = """usage: script/run SPEC.yaml [--json FILE] [--go-on]
Run an experiment and print its results. --json writes all of them to FILE.
--go-on runs all trials even if the first trial of a new program fails."""


def run(arguments: list[str]) -> int:
    """Run an experiment, with a worker if none runs; return the exit status."""
    if not arguments or {"-h", "--help"} & set(arguments):
        print(USAGE)
        return 0 if arguments else 2
    interrupt_on_stop_signals()
    installation = Installation.of_environment()
    with embedded_services(installation, meanwhile=load_libraries) as lease:
        environment = child_environment(installation, lease.state)
        load(environment)
        with Supervisor(installation, environment) as supervisor:
            reader, writer = os.pipe()
            process = launch(
                ["config.run", "experiment", str(writer), *arguments],
                environment,
                name="run",
                death_signal=signal.SIGINT,
                cwd=Path.cwd(),  # for relative paths in the arguments
                pass_fds=[writer],
            )
            os.close(writer)
            try:
                load(environment, *WORKER)
                with os.fdopen(reader) as answer:
                    is_set_up = bool(answer.read())
                if is_set_up:
                    supervisor.ensure_worker()
                    supervisor.watch(lambda: process.poll() is not None)
                return process.wait()
            finally:
                stop(process, [(signal.SIGINT, 30.0)])  # the command cancels its trials


def set_up_and_run(arguments: list[str]) -> int:
    """Migrate the database, report it on a descriptor, and run an experiment.

    Meanwhile the parent imports the worker, which needs the tables.
    """
    descriptor, *arguments = arguments
    sys.argv = ["manage.py", "set_up", "--no-demo"]
    run_command()
    with os.fdopen(int(descriptor), "w") as answer:
        answer.write("ready")
    sys.argv = ["manage.py", "run_experiment", *arguments]
    run_command()
    return 0


def with_services(arguments: list[str]) -> int:
    """Run a command of manage.py; migrate the database after a fresh start."""
    interrupt_on_stop_signals()
    installation = Installation.of_environment()
    with embedded_services(installation) as lease:
        environment = child_environment(installation, lease.state)
        if lease.fresh:
            set_up(environment, "--no-demo")
        process = start(
            manage(*arguments),
            log=None,
            death_signal=signal.SIGTERM,
            cwd=Path.cwd(),
            environment=environment,
            stdin=None,
            session=False,
        )
        # The command handles signals; the terminal sends it Ctrl-C.
        signal.signal(signal.SIGINT, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda received, _frame: process.send_signal(received))
        status = process.wait()
        return status if status >= 0 else 128 - status


def main(program: str, arguments: list[str]) -> int:
    try:
        return {"run": run, "experiment": set_up_and_run, "manage": with_services}[program](arguments)
    except Interrupted as interrupted:
        return interrupted.exit_status
    except KeyboardInterrupt:  # of a child
        return 130
    except ServiceError as error:
        print(f"rankwire: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
