"""The main thread reads what a forked child process computes: in turn from a Pipe and from a Queue of multiprocessing.

The child's main thread writes to the Pipe itself. The Queue has a feeder thread in the child, which the child's main
thread wakes and which writes to the queue's pipe.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing.connection import Connection

from waitlog import Log, annotate, compute, run

STEPS = 40
COMPUTE_SECONDS = 0.012
CONSUME_SECONDS = 0.002
PAYLOAD = bytes(1 << 14)


def produce(log: Log, sender: Connection, pieces: multiprocessing.Queue[bytes]) -> None:
    """The child: compute, then hand over by one of the two ways in turn."""
    log.fork("child")
    for step in range(STEPS):
        with log.does("compute"):
            compute(COMPUTE_SECONDS)
        if step % 2 == 0:
            log.wake("Connection.send_bytes")
            sender.send_bytes(PAYLOAD)
        else:
            log.wake("multiprocessing.Queue.put")
            pieces.put(PAYLOAD)
    feeder = pieces._thread
    log.role("feeder", tid=feeder.native_id, does="lock")
    log.save()


def body(log: Log) -> None:
    """Take a piece a step and compute on it."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    pieces: multiprocessing.Queue[bytes] = context.Queue()
    child = context.Process(target=produce, args=(log, sender, pieces))
    child.start()
    for step in range(STEPS):
        with annotate("step"):
            if step % 2 == 0:
                with log.wait("Connection.recv_bytes", "child"):
                    receiver.recv_bytes()
            else:
                with log.wait("multiprocessing.Queue.get", "feeder", "child"):
                    pieces.get()
            compute(CONSUME_SECONDS)
    child.join()


if __name__ == "__main__":
    run(body)
