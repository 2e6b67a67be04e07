"""Predictions made by hand, for what the outputs and commands do with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from nsysdiag import typed
from nsysdiag.phrases import finished
from nsysdiag.replay.facts import (
    KIND,
    WHATIF_SCHEMA_VERSION,
    CauseChange,
    FourParts,
    Identity,
    Saving,
    Transform,
    WhatIf,
    WhatIfDevice,
)
from nsysdiag.report import CauseInfo, Tool, TraceInfo

if TYPE_CHECKING:
    from collections.abc import Sequence

MS, US = 1_000_000, 1_000
SYNC = Transform(option="without", of="sync")
GEMM = Transform(option="kernel", of="*gemm*", factor=0.5)
LOAD = Transform(option="host", of="acme load", factor=0.5)


def device(key: str = "gpu0", name: str = "NVIDIA H100", **changes: Any) -> WhatIfDevice:
    """A device whose step of 34.9 ms would take 18.9 ms: 16 ms less idle time."""
    facts: dict[str, Any] = {
        "now_ns": 34_900 * US,
        "predicted_ns": 18_900 * US,
        "now": FourParts(
            compute_ns=12 * MS, exposed_comm_ns=2 * MS, exposed_copy_ns=1 * MS, idle_ns=19 * MS + 900 * US
        ),
        "predicted": FourParts(
            compute_ns=12 * MS, exposed_comm_ns=2 * MS, exposed_copy_ns=1 * MS, idle_ns=3 * MS + 900 * US
        ),
        "ledger": {"host_compute": 3 * MS, "dispatch": 900 * US},
    }
    return WhatIfDevice(key=key, name=name, **facts | changes)


def whatif(
    transforms: Sequence[Transform] = (SYNC,), devices: Sequence[WhatIfDevice] = (), file: str = "train.sqlite"
) -> WhatIf:
    """A prediction for one device, or those given."""
    found = list(devices) or [device()]
    times = {"sync": (18 * MS, 0), "host_compute": (1 * MS, 3 * MS), "dispatch": (900 * US, 900 * US)}
    made = WhatIf(
        schema_version=WHATIF_SCHEMA_VERSION,
        kind=KIND,
        tool=Tool(name="nsysdiag", version="0.0.0"),
        trace=TraceInfo(
            file=file,
            size_bytes=3_456_789,
            fingerprint="b1946ac92492d2347c6235b4d2611184",
            nsys_version="2025.1.1",
            export_schema_version="3.24.8",
            tables={"CUPTI_ACTIVITY_KIND_KERNEL": 1200},
            capabilities=[],
            warnings=[typed.file(file) + ": 3 events were dropped"],
        ),
        per="step",
        steps=40,
        now_ns=34_900 * US,
        predicted_ns=18_900 * US,
        low_ns=18_500 * US,
        high_ns=19_600 * US,
        identity=Identity(exact=True, length_error=0.003),
        refused=None,
        transforms=list(transforms),
        devices=found,
        waterfall=[
            CauseChange(cause=cause, from_ns=was * len(found), to_ns=now * len(found))
            for cause, (was, now) in times.items()
        ],
        savings=[],
        caveats=["Not predicted: clocks, bandwidth and SMs that operations share."],
        causes=[
            CauseInfo(id="sync", title="Synchronization", meaning="The thread waited for the GPU.", color="#d1495b"),
            CauseInfo(id="host_compute", title="Host code", meaning="The thread was on a CPU.", color="#16a34a"),
            CauseInfo(id="dispatch", title="Dispatch", meaning="The shortest gap.", color="#7c8a99"),
        ],
    )
    return finished(made)


def listing(file: str = "train.sqlite") -> WhatIf:
    """Without a change: what each finding would bring. One cannot be predicted, the first and second are one more."""
    first, second, third = "f-sync-0a1b2c", "f-data_loading-1a2b3c", "f-lock_wait-2a2b3c"

    def saving(predicted_us: int, *ids: str, **more: Any) -> Saving:
        return Saving(
            finding=ids[0] if len(ids) == 1 else None,
            transforms=[Transform(option="finding", of=each) for each in ids],
            predicted_ns=predicted_us * US,
            low_ns=predicted_us * US - 400 * US,
            high_ns=predicted_us * US + 700 * US,
            findings=list(ids) if len(ids) > 1 else [],
            **more,
        )

    title = "Synchronization in " + typed.nvtx("acme step #")
    refused = "the call that waits is not in the trace"
    plain = replace(
        whatif((), file=file),
        predicted_ns=34_900 * US,
        low_ns=34_900 * US,
        high_ns=34_900 * US,
        devices=[device(predicted_ns=34_900 * US, predicted=device().now)],
        waterfall=[],
        savings=[
            saving(18_900, first, title=title),
            saving(30_000, second, title="Waiting for input data"),
            saving(34_900, third, title="Waiting for a lock", refused=refused),
            saving(15_000, first, second),
        ],
        floor_ns=12_100 * US,
    )
    return finished(plain)


def refused(why: str = "the model is off by 4.1%, more than 2%") -> WhatIf:
    """No prediction."""
    now = device(predicted_ns=34_900 * US, predicted=device().now, ledger={"sync": 19_900 * US})
    return replace(
        whatif(devices=[now]),
        predicted_ns=34_900 * US,
        low_ns=34_900 * US,
        high_ns=34_900 * US,
        identity=Identity(exact=True, length_error=0.041),
        refused=why,
        waterfall=[],
    )


def unsure() -> WhatIf:
    """Bounds that say little."""
    return replace(whatif(), low_ns=17 * MS, high_ns=31 * MS, cannot_tell=True)


def unsure_listing() -> WhatIf:
    """The first finding may save much or little."""
    found = listing()
    first = replace(found.savings[0], low_ns=17 * MS, high_ns=31 * MS, cannot_tell=True)
    return replace(found, savings=[first, *found.savings[1:]])


WHATIFS = {
    "one": whatif,
    "several": lambda: whatif((SYNC, GEMM, LOAD), [device(f"gpu{at}") for at in range(8)]),
    "listing": listing,
    "refused": refused,
    "unsure": unsure,
    "unsure listing": unsure_listing,
}
