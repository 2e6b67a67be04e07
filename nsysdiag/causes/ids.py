"""Ids that presentation uses by name: it reads records only and may not import the rules."""

from __future__ import annotations

from nsysdiag.bottlenecks import IN_UNTRACED_CALLS, IN_UNTRACED_GRAPHS, NO_LAUNCH, NOT_STARTED

GRAPH_BUILD = "graph_build"
HOST_CODE = "host_compute"
SYNCHRONIZATION, BLOCKING_COPY, UNCOVERED = "sync", "blocking_copy", "uncovered"
UNKNOWN_AS = {
    UNCOVERED: "",
    "device_stall": NOT_STARTED,
    "launch_unknown": NO_LAUNCH,
    "graph_untraced": IN_UNTRACED_GRAPHS,
    "blocked": IN_UNTRACED_CALLS,
}
"""What unknown time is shown as that is mostly of one of these causes; empty for its own name."""
