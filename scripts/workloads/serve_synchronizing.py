"""A server that synchronizes in each step before it schedules the next."""

from __future__ import annotations

from server import Server
from waitlog import Log, run


def body(log: Log) -> None:
    """Serve all requests."""
    Server(log, elsewhere=True, waits=True).serve()


if __name__ == "__main__":
    run(body)
