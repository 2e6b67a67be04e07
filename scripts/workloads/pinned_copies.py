"""The batches of `pageable_copies` in pinned memory: the host runs ahead of the copies."""

from __future__ import annotations

from pageable_copies import copy_and_work
from waitlog import Log, run


def body(log: Log) -> None:
    """Nobody waits for a copy."""
    copy_and_work(log, pinned=True)


if __name__ == "__main__":
    run(body)
