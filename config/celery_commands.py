"""Celery's worker and beat: arguments `worker` or `beat`, and options.

Celery's own program also imports its other commands, among them an interactive one: 0.1 s that the first trial would wait.
"""

from __future__ import annotations

import sys
from typing import Final

from celery.bin.base import CLIContext
from celery.bin.beat import beat
from celery.bin.worker import worker

_COMMANDS: Final = {"worker": worker, "beat": beat}


def main(name: str, options: list[str]) -> None:
    from config.celery import app  # reads the settings, which imports ahead of them must not

    _COMMANDS[name].main(options, prog_name=name, obj=CLIContext(app=app, no_color=False, workdir=None))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
