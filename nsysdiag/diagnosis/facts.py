"""What limits a device: how its work comes, and the kinds of bottleneck in the order of their repair."""

from __future__ import annotations

from nsysdiag.fields import Count, Ns, OwnText, Sentence, Share, TotalNs
from nsysdiag.record import Record


class Workload(Record, frozen=True):
    """How work comes to the device, which decides what it is measured by.

    `kind`: `steps`, iterations of about the same length (training); `bursts`, work that comes irregularly with long
    idle stretches between (serving); `unclear`. `why` says what shows it. Of bursts, `between_ns` is the idle time
    between them, which is no loss where nothing was asked for; `judged_ns` is the time that all shares are of: the
    window, of bursts without what is between them."""

    kind: OwnText
    why: Sentence
    judged_ns: TotalNs
    bursts: Count = 0
    median_burst_ns: Ns | None = None
    between_ns: TotalNs = 0


class TriageKind(Record, frozen=True):
    """One kind of bottleneck: `feed`, `communication`, `batch`, `runtime`, `kernels` or `sizing`.

    `holds` is None where the trace cannot tell. `share` is the part of the judged time that a repair could touch, None
    where it is no matter of time. `evidence` are sentences with the numbers, also where it does not hold; `advice` is
    given where it does."""

    id: OwnText
    title: OwnText
    holds: bool | None
    share: Share | None
    evidence: list[Sentence]
    advice: list[Sentence] = []


class Triage(Record, frozen=True):
    """All kinds in the order in which they are worth repairing, and the one that comes first: `id` is `none` where none
    holds, and `unresolved` where the trace cannot tell whether work reaches the device in time."""

    id: OwnText
    sentence: Sentence
    workload: Workload
    kinds: list[TriageKind]
