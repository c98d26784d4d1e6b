"""What can go wrong around the embedded services.

ServiceError            a sentence for the person at the terminal; the scripts print it and end with status 1
└── MissingProgram      names the Debian package that holds the program
"""


class ServiceError(Exception):
    """A service cannot be started or has died; the text is one line."""


class MissingProgram(ServiceError):
    """A program is not installed."""

    def __init__(self, program: str, package: str) -> None:
        super().__init__(f"{program} is not installed; the package is {package} (script/bootstrap installs it)")
