"""Threads in words."""

from __future__ import annotations

from functools import cache

from nsysdiag import typed
from nsysdiag.events.identity import pid_of, process_of, tid_of
from nsysdiag.report import Thread
from nsysdiag.wakeups.host_trace import HostTrace


class ThreadNames:
    """Names of threads, as far as the trace has them; each is looked up once."""

    def __init__(self, host_trace: HostTrace) -> None:
        self._host_trace = host_trace
        self.name = cache(self._name)
        self.named = cache(self._named)

    def thread(self, identity: int) -> Thread:
        """The thread as a record."""
        return Thread(pid=pid_of(identity), tid=tid_of(identity), name=self.name(identity))

    def _name(self, identity: int) -> str | None:
        return self._host_trace.thread_names.get(identity)

    def _named(self, identity: int) -> str:
        """`thread 17 'loader'`, in a process without GPU work `process 9 'python3', thread 17 'loader'`."""
        name, process = self.name(identity), process_of(identity)
        own = f"thread {tid_of(identity)}" + (f" '{typed.thread(name)}'" if name else "")
        if process in self._host_trace.gpu_processes:
            return own
        program = self._host_trace.program(process) or ""
        if tid_of(identity) == pid_of(identity):
            program, own = name or program, ""
        return (
            f"process {pid_of(identity)}"
            + (f" '{typed.process(program)}'" if program else "")
            + (f", {own}" if own else "")
        )
