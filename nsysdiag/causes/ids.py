"""Ids that presentation asks for by name: it reads records only and may not import the rules."""

from __future__ import annotations

GRAPH_BUILD = "graph_build"
HOST_CODE = "host_compute"
