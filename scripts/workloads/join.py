"""The main thread waits for the end of others: of a thread by join, of a forked process and of a program by waitpid."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time

from waitlog import Log, annotate, compute, run

STEPS = 12
BUSY_SECONDS = 0.015
PROGRAM = "import time; time.sleep(0.01)"


def work(log: Log, role: str, step: int) -> None:
    """Sleep or compute, and end."""
    log.role(role)
    if step % 2 == 0:
        with log.does("sleep"):
            time.sleep(BUSY_SECONDS)
    else:
        with log.does("compute"):
            compute(BUSY_SECONDS)


def join_thread(log: Log, step: int) -> None:
    """A thread that ends."""

    def target() -> None:
        work(log, f"thread {step}", step)
        log.wake("end of thread")

    thread = threading.Thread(target=target)
    thread.start()
    with log.wait("Thread.join", f"thread {step}"):
        thread.join()


def wait_for_child(log: Log, step: int) -> None:
    """A forked process that exits."""
    child = os.fork()
    if child == 0:
        log.fork(f"child {step}")
        work(log, f"child {step}", step)
        log.wake("_exit")
        log.save()
        os._exit(0)
    with log.wait("waitpid", f"child {step}"):
        os.waitpid(child, 0)


def wait_for_program(log: Log, step: int) -> None:
    """A program that cannot log itself."""
    program = subprocess.Popen([sys.executable, "-S", "-E", "-c", PROGRAM])
    log.add("role", role=f"program {step}", does="sleep", pid=program.pid, tid=program.pid)
    with log.wait("Popen.wait", f"program {step}"):
        program.wait()


def body(log: Log) -> None:
    """One of each a step."""
    for step in range(STEPS):
        with annotate("step"):
            join_thread(log, step)
            wait_for_child(log, step)
            if step % 3 == 0:
                wait_for_program(log, step)
            compute(0.001)


if __name__ == "__main__":
    run(body)
