"""A server that makes the texts of its answers on the thread that launches."""

from __future__ import annotations

from server import Server
from waitlog import Log, run


def body(log: Log) -> None:
    """Serve all requests."""
    Server(log, elsewhere=False).serve()


if __name__ == "__main__":
    run(body)
