"""A server whose decode steps launch their kernels one by one."""

from __future__ import annotations

from server import Server
from waitlog import Log, run


def body(log: Log) -> None:
    """Serve all requests."""
    Server(log, graphs=False, elsewhere=True, later=True).serve()


if __name__ == "__main__":
    run(body)
