"""User of the embedded services: prints what it got and waits."""

import json
import signal
import sys

from config.services.errors import ServiceError
from config.services.lease import Installation, embedded_services


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    try:
        with embedded_services(Installation.of_environment()) as lease:
            print(json.dumps({"fresh": lease.fresh, **vars(lease.state)}), flush=True)
            signal.pause()
    except ServiceError as error:
        print(json.dumps({"error": str(error)}), flush=True)


main()
