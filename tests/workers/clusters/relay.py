"""`relay.py HOST PORT`: standard streams as a TCP connection."""

from __future__ import annotations

import os
import socket
import sys
import threading


def main(host: str, port: int) -> None:
    try:
        connection = socket.create_connection((host, port), timeout=5)
    except OSError as error:
        sys.exit(f"relay: connect to {host} port {port}: {error.strerror or error}")
    connection.settimeout(None)

    def send() -> None:
        while data := os.read(0, 1 << 16):
            connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)

    threading.Thread(target=send, daemon=True).start()
    while data := connection.recv(1 << 16):
        os.write(1, data)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
