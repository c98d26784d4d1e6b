"""Errors of the embedded services: one line, for exit status 1 of scripts.

ServiceError
└── MissingProgram      names the Debian package of the program
"""


class ServiceError(Exception):
    """A service cannot be started or died."""


class MissingProgram(ServiceError):
    """A program is not installed."""

    def __init__(self, program: str, package: str) -> None:
        super().__init__(f"{program} is not installed; the package is {package} (script/bootstrap installs it)")
