"""What the trace could not tell, and the capture that would."""

from __future__ import annotations

from nsysdiag.model import Capability, DeviceReport
from nsysdiag.trace.capabilities import recapture_command

# Which evidence would turn an unresolved cause into a resolved one.
_WOULD_TELL = {
    "uncovered": ("os-runtime", "scheduling", "cpu-samples"),
    "blocked": ("os-runtime",),
    "launch_unknown": ("cuda-api",),
    "graph_untraced": ("cuda-graphs",),
}
_ALWAYS_WORTH = ("os-runtime", "scheduling", "cpu-samples")
_NEEDED = ("kernels", "cuda-api")


def recapture(devices: list[DeviceReport], capabilities: list[Capability]) -> str | None:
    """The `nsys profile` line that brings what is missing; None where nothing is."""
    absent = {capability.id for capability in capabilities if not capability.available}
    if not devices:
        return recapture_command(absent & {*_NEEDED, *_ALWAYS_WORTH})
    wanted = {
        kind
        for device in devices
        for cause, kinds in _WOULD_TELL.items()
        if device.ledger.get(cause, 0) > 0
        for kind in kinds
    }
    return recapture_command(absent & wanted) if absent & wanted else None


def device_notes(*, assumed_apart: bool, malformed: int, narrowed_away: bool) -> list[str]:
    """Sentences about one device that a reader must know before trusting its numbers."""
    notes = []
    if assumed_apart:
        notes.append(
            "Several processes use this device number and the trace has no map to GPUs: they are kept apart here,"
            " and may share a GPU. --same-gpu unites them."
        )
    if malformed:
        notes.append(f"{malformed:,} malformed operation rows were left out (no valid start and end).")
    if narrowed_away:
        notes.append("No GPU work of this device lies in the chosen time.")
    return notes
