"""The host's threads and CPUs as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.document.markup import code, table, text
from nsysdiag.host.words import TITLE, facts, holder_name, host_sentences, on_cpu, role, share, stall_label, thread_name
from nsysdiag.units import format_count, format_ns

if TYPE_CHECKING:
    from nsysdiag.host.facts import HostReport, HostThread

TOP_THREADS = 10


def host_blocks(host: HostReport) -> list[str]:
    """Sentences, the threads that matter most, and who had the CPUs that threads waited for."""
    shown = host.threads[:TOP_THREADS]
    if not shown:
        return []
    lines = [f"- {text(line)}" for line in (*host_sentences(host), *facts(host))]
    header = ["Thread", "Role", "On CPU", "Off CPU", "Ready, no CPU", "Switches", "CUDA calls", "Longest off the CPU"]
    rows = [_thread(row, host.end_ns - host.start_ns) for row in shown]
    return [f"## {TITLE}", "\n".join(lines), table(header, "llrrrrrl", rows), *_holders(host)]


def _thread(row: HostThread, span: int) -> list[str]:
    return [
        code(thread_name(row), in_table=True),
        text(role(row)),
        on_cpu(row, span),
        share(row.off_cpu_ns, span),
        share(row.preempted_ns, span),
        "–" if row.switches is None else format_count(row.switches),
        share(row.api_ns, span),
        text(stall_label(row)) or "–",
    ]


def _holders(host: HostReport) -> list[str]:
    holders = host.contention.holders if host.contention else []
    rows = [[code(holder_name(holder), in_table=True), format_ns(holder.ns)] for holder in holders]
    return [table(["Had the CPU that threads waited for", "Time"], "lr", rows)] if rows else []
