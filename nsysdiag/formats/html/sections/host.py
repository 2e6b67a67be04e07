"""What the host's threads did meanwhile, who had the CPUs, and when it began."""

from __future__ import annotations

from nsysdiag.document.context import Context
from nsysdiag.formats.html.sections.section import View, report_section
from nsysdiag.host.chart import draw_windows
from nsysdiag.host.words import TITLE, facts, holder_name, host_sentences, on_cpu, role, stall_label, thread_name


def view(context: Context) -> View | None:
    """Left out where no thread of a process with GPU work is known."""
    host = context.report.host
    if host is None or not host.threads:
        return None
    span = host.end_ns - host.start_ns
    return {
        "host": host,
        "span": span,
        "sentences": host_sentences(host),
        "facts": facts(host),
        "threads": [(row, thread_name(row), role(row), on_cpu(row, span), stall_label(row)) for row in host.threads],
        "holders": [(holder_name(row), row.ns) for row in (host.contention.holders if host.contention else [])],
        "holder_count": host.contention.holder_count if host.contention else 0,
        "chart": draw_windows(host),
    }


section = report_section("host", TITLE, view)
