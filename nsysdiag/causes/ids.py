"""Ids that presentation uses by name: it reads records only and may not import the rules."""

from __future__ import annotations

GRAPH_BUILD = "graph_build"
HOST_CODE = "host_compute"
SYNCHRONIZATION, BLOCKING_COPY, UNCOVERED = "sync", "blocking_copy", "uncovered"
