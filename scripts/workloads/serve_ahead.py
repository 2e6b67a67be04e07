"""A server that schedules and launches a step before it reads the tokens of the one before."""

from __future__ import annotations

from server import Server
from waitlog import Log, run


def body(log: Log) -> None:
    """Serve all requests."""
    Server(log, elsewhere=True, later=True).serve()


if __name__ == "__main__":
    run(body)
