"""Ids that presentation uses by name: it reads records only and may not import the rules."""

from __future__ import annotations

from nsysdiag.bottlenecks import BUILDING_GRAPHS, IN_UNTRACED_CALLS, IN_UNTRACED_GRAPHS, NO_LAUNCH, NOT_STARTED

GRAPH_BUILD = "graph_build"
HOST_CODE = "host_compute"
SYNCHRONIZATION, BLOCKING_COPY, UNCOVERED = "sync", "blocking_copy", "uncovered"
STARTUP_AS = {GRAPH_BUILD: BUILDING_GRAPHS}
"""What time of start-up is shown as that is mostly of one of these causes: a loop may do it in each step."""
UNKNOWN_AS = {
    UNCOVERED: "",
    "device_stall": NOT_STARTED,
    "launch_unknown": NO_LAUNCH,
    "graph_untraced": IN_UNTRACED_GRAPHS,
    "blocked": IN_UNTRACED_CALLS,
}
"""What unknown time is shown as that is mostly of one of these causes; empty for its own name."""
