"""The phases of a job in the report, each with what every device did in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from nsysdiag.arrays.groups import summed
from nsysdiag.bottlenecks import IN_GRAPHS, UNKNOWN, WITH_GRAPHS
from nsysdiag.causes.ids import STARTUP_AS, UNKNOWN_AS
from nsysdiag.fields import Base64, CauseId, Count, Moment, NsByCause, OwnText, Period, Sentence, Share, TotalNs
from nsysdiag.record import Packed, PackedColumn, Record
from nsysdiag.typed import joined, say
from nsysdiag.units import format_count, format_ns

FEWEST_MEASURED = 3
"""Steps: of fewer no length is shown, as one or two have no usual length."""
FEWEST_REPEATS = 5
"""Fewer repeats show no steady state."""
UNEVEN = 1.03
"""A mean that is this many times the median, or less by as much, is shown as well: savings are of the mean step, and
look wrong next to another length."""
LEAST_WORK = 0.05
"""A device with less than this share of the busiest one's work is merely touched: it says nothing of the job."""
PhaseName = Literal["start-up", "steady", "pause", "teardown", "head", "tail", "outside"]
"""Before the first part that repeats, a part that repeats, between two of them, and after the last. `head` and `tail`
are the same two of a capture that begins in the middle of a run. `outside` does the work of steps that the user named,
but is in none of these."""
Basis = Literal["steady", "phase", "window", "cold", "none"]
"""What is judged: phases that repeat; phases with two to four repeats; the whole window; a start without a steady
phase; nothing, as no GPU work was recorded."""
STEP, REPEAT, PASS = "step", "repeat", "pass"
MOST_LENGTHS = 2_000
"""Numbers that a phase holds of its steps."""
AccountBase = Literal["window", "start"]


Place = tuple[str, str, tuple[str, ...]]
"""The cause of a finding, its variant, and its place in the program: these stay when findings are joined."""


class PhaseSteps(Packed, frozen=True):
    """The whole steps of a loop inside a phase: how many, the median time from the start of one to the start of the
    next, and their source (`nvtx`, `anchor`; `sequence`: the same operations, three or four times). A step cut by an
    end of the trace does not count. `warm_up_ns` is the length of a slow first step before these, None without one.
    `mean_ns` is the mean time, None in reports of older versions. `parts` is how many repeats of a shorter loop are in
    each step, None if none is known. `certain` is False if the trace does not show which are the steps: these or
    their parts; or, with `group`, a longer loop with so many of these in each repeat; or, with neither, several of them
    at a time. `kind` is `step`, or `repeat`
    if each may as well be a layer of one pass: of so many `kernels`; `model`: these are those of a model's layer; or
    `pass`, the only one, of so many `parts`.

    `lengths` is the time of each, packed as in `iterations.packed`: of `each` together if there are very many. It is
    empty of few steps, and in a job of one loop, whose iterations have it. `operations` is the median number in a step,
    over all devices; None if not counted. `layers` is how many layers of each kind are in a step, or in a repeat
    that may be several layers; empty if all are alike or none are known."""

    count: Count
    median_ns: Period
    source: OwnText
    warm_up_ns: TotalNs | None = None
    mean_ns: Period | None = None
    parts: Count | None = None
    group: Count | None = None
    certain: bool = True
    kind: OwnText = STEP
    kernels: Count | None = None
    model: bool = False
    operations: Count | None = None
    lengths: Base64 = ""
    layers: list[Count] = []

    @property
    def each(self) -> int:
        """How many steps in a row are one number of `lengths`."""
        return -(-self.count // MOST_LENGTHS) or 1

    def columns(self) -> Iterable[PackedColumn]:
        """The lengths, if it has them."""
        return [PackedColumn(self.lengths, self.count // self.each, 8)] if self.lengths else []

    @property
    def of_the_program(self) -> bool:
        """Whether these are steps, of which a saving can be a part."""
        return self.kind == STEP

    @property
    def few(self) -> bool:
        """Whether they are too few steps for a steady state."""
        return self.of_the_program and self.count < FEWEST_REPEATS

    @property
    def average_ns(self) -> int:
        """The mean time; in reports of older versions, which lack it, the median."""
        return self.mean_ns or self.median_ns

    @property
    def words(self) -> str:
        """`30 steps, median 12.0 ms`; `2 steps` if they are too few for a median; `10 steps of 32 parts`."""
        if self.kind == PASS:
            return f"one pass{self._layers} (no steady state)"
        if not self.of_the_program:
            what = "probably layers of one pass" if self.model else "layers of one pass, or steps"
            what = f"probably {self._several} layers of one pass each" if self.layers else what
            each = f"{format_count(self.kernels or 0)} kernels"
            return f"{format_count(self.count)} repeats of {each} ({what}: see --step), {self.length}"
        steps = f"{format_count(self.count)} step{'' if self.count == 1 else 's'}"
        steps += self._parts
        if not self.certain:
            steps += f" (or {self._other}: see --step)"
        return steps if self.count < FEWEST_MEASURED else f"{steps}, {self.length}"

    @property
    def _parts(self) -> str:
        """` of 32 layers (16 + 16)`, or ` of 32 parts`."""
        if self.layers:
            kinds = " + ".join(map(format_count, self.layers))
            return f" of {format_count(sum(self.layers))} layers ({kinds})"
        return f" of {format_count(self.parts)} parts" if self.parts else ""

    @property
    def _other(self) -> str:
        """What else may be the steps."""
        if self.group:
            return f"{format_count(self.group)} of them are one"
        return "the parts are steps" if self.parts else "several of them are one"

    @property
    def _layers(self) -> str:
        """` of 24 layers`; `: 24 repeats of 42 kernels, probably its layers` if the trace does not show it."""
        if not self.parts:
            return ""
        count = format_count(self.parts)
        if self.certain:
            return f" of {count} layers"
        what = (
            f"each probably {self._several} of its layers" if self.layers else f"{'probably ' * self.model}its layers"
        )
        return f": {count} repeats of {format_count(self.kernels or 0)} kernels, {what}"

    @property
    def _several(self) -> str:
        """How many layers of a pass are in each repeat."""
        return format_count(sum(self.layers))

    @property
    def length(self) -> str:
        """`median 12.0 ms`; `mean 13.0 ms, median 12.0 ms` if that is another: then some steps take far longer than
        most, and savings are of the mean."""
        median, ends = f"median {format_ns(self.median_ns)}", sorted((self.average_ns, self.median_ns))
        return f"mean {format_ns(self.mean_ns)}, {median}" if self.mean_ns and ends[1] > UNEVEN * ends[0] else median


def repeating(steps: PhaseSteps | None, basis: Basis | str) -> str:
    """What a phase that repeats is called: a few repeats are not a steady state, and what the basis of the judged phase
    says holds if the steps are not known."""
    few = steps.few if steps is not None and steps.of_the_program else basis == "phase"
    return "repeats" if few else "steady"


def numbered(names: Sequence[str]) -> list[str]:
    """The names, with a number if several are the same."""
    seen: Counter[str] = Counter()
    found = []
    for name in names:
        seen[name] += 1
        found.append(f"{name} {seen[name]}" if names.count(name) > 1 else name)
    return found


class Waited(Record, frozen=True):
    """Idle time of a device that waited for the stream or an event of another one, `device`: `ns` that are charged to
    `bottleneck`, which is what that device did meanwhile; `sync` if that device was not analyzed."""

    device: OwnText
    bottleneck: CauseId
    ns: TotalNs


class Did(Record, frozen=True):
    """What a device or its host did for `ns` of a phase: a kernel, a copy, a call, or host code. `writes`: a call that
    writes to a file, as for a checkpoint or results."""

    text: Sentence
    ns: TotalNs
    writes: bool = False


class PhaseDevice(Record, frozen=True):
    """What one device did in a phase, inside the window of that device; over all phases these figures add up to the
    device's. compute_ns + exposed_comm_ns + exposed_copy_ns + idle_ns is the part of its window in the phase, `ledger`
    sums to idle_ns.

    `outside_ns` is the part of the phase outside the device's window. `account` is the time by bottleneck: it sums to
    the four parts (`account_base` window), or in a start-up, which begins at the first CUDA call, to them and
    `outside_ns` (start). `waited` is the part of the account in which the device only waited for others. `late_ns` is
    its waiting in communication for late ones, if it is charged to what made these late; `late_kept_ns` the rest of it,
    which stays charged to communication, as these communicated, or no reason is known. `returned_ns` is idle time
    behind waits that is charged to what the thread did there, as by replay it stays without the wait. `did` is what
    took most of a phase that is not judged, at most two parts of it. `graphs_ns` is the part of `compute_ns` in which
    nothing ran but CUDA graphs that were recorded as a whole."""

    key: OwnText
    compute_ns: TotalNs
    exposed_comm_ns: TotalNs
    exposed_copy_ns: TotalNs
    idle_ns: TotalNs
    outside_ns: TotalNs
    ledger: NsByCause
    account: dict[CauseId, TotalNs]
    account_base: AccountBase = "window"
    waited: list[Waited] = []
    late_ns: TotalNs = 0
    late_kept_ns: TotalNs = 0
    returned_ns: TotalNs = 0
    did: list[Did] = []
    graphs_ns: TotalNs = 0


STARTUP = "startup"
MOSTLY_GRAPHS, ONLY_GRAPHS = 0.5, 0.95
"""Shares of the compute time in graphs that were recorded as a whole, above which they are named, and named alone."""


def is_mostly_graphs(graphs_ns: int, compute_ns: int) -> bool:
    """Whether graphs that were recorded as a whole take most of the compute time: what ran in it is not in the
    trace."""
    return graphs_ns > MOSTLY_GRAPHS * compute_ns


def shown_as(bottleneck: str, devices: Iterable[PhaseDevice]) -> str:
    """What time of these devices is shown as: kernels as graphs, if most of it is that of whole graphs; unknown time
    and start-up as what most of it is, if that is known."""
    counted = list(devices)
    if bottleneck == UNKNOWN:
        return _unknown_as(summed(each.ledger for each in counted)) or bottleneck
    if bottleneck == STARTUP:
        ledger, total = summed(each.ledger for each in counted), sum(each.account.get(STARTUP, 0) for each in counted)
        return next((name for cause, name in STARTUP_AS.items() if 2 * ledger.get(cause, 0) > total), bottleneck)
    graphs, compute_ns = sum(each.graphs_ns for each in counted), sum(each.compute_ns for each in counted)
    if bottleneck != "kernels" or not is_mostly_graphs(graphs, compute_ns):
        return bottleneck
    return IN_GRAPHS if graphs > ONLY_GRAPHS * compute_ns else WITH_GRAPHS


def _unknown_as(ledger: dict[str, int]) -> str:
    """What unknown time is shown as, by its causes; empty if none of them is most of it."""
    unknown = {cause: ledger.get(cause, 0) for cause in UNKNOWN_AS}
    return next((UNKNOWN_AS[cause] for cause, ns in unknown.items() if 2 * ns > sum(unknown.values())), "")


def done(devices: Sequence[PhaseDevice]) -> Sentence:
    """`cudaHostAlloc 308 ms, cuModuleLoad 120 ms`: what took most of a phase; empty if it has no name."""
    return told(done_by(devices))


def done_by(devices: Sequence[PhaseDevice]) -> Sequence[Did]:
    """What took most of a phase, of the device whose time is counted."""
    counted = max(devices, key=lambda each: sum(each.account.values()), default=None)
    return counted.did if counted is not None else []


OTHER_WORK = "other work"


def unsteady_name(name: str, devices: Sequence[PhaseDevice]) -> str:
    """What a phase that is not steady is called: one between steps in which devices work for most of the time is no
    pause."""
    idle = sum(each.idle_ns + each.outside_ns for each in devices)
    work = sum(each.compute_ns + each.exposed_comm_ns + each.exposed_copy_ns for each in devices)
    return OTHER_WORK if name == "pause" and work > idle else name


def told(did: Sequence[Did]) -> Sentence:
    """In words."""
    return joined(", ", (say("{} {}", each.text, format_ns(each.ns)) for each in did))


def counted_ns(devices: Sequence[PhaseDevice]) -> int:
    """The time of a phase that its shares are of: that of the device of which most is in the account. Chosen ranges are
    a part of the time from the first to the last of them."""
    return max((sum(each.account.values()) for each in devices), default=0)


class Phase(Record, frozen=True):
    """A part [start_ns, end_ns) of the job's time. Phases touch, and together they cover the time from the first to the
    last launched operation of all devices; a start-up begins with the first CUDA call.

    The diagnosis is about `judged` ones. `share` is the part of the phase's device time that `bottleneck` takes."""

    name: PhaseName
    start_ns: Moment
    end_ns: Moment
    judged: bool
    bottleneck: OwnText
    share: Share
    sentence: Sentence
    steps: PhaseSteps | None
    devices: list[PhaseDevice]

    @property
    def shown(self) -> str:
        """What its bottleneck is shown as."""
        return shown_as(self.bottleneck, self.devices)

    @property
    def counted_ns(self) -> int:
        """Its length as far as its shares are of it."""
        return counted_ns(self.devices) or self.end_ns - self.start_ns


class BehindWait(Struct, frozen=True):
    """The idle `ns` that are charged to the wait of a finding, and in which the thread did something of another
    `bottleneck`: that of the finding at `other`, None if that is too little for a finding."""

    wait: Place
    bottleneck: str
    other: Place | None
    ns: int


def added(parts: list[PhaseDevice]) -> PhaseDevice:
    """Several phases of one device as one."""
    waited = summed({(each.device, each.bottleneck): each.ns} for part in parts for each in part.waited)
    return PhaseDevice(
        **{name: sum(getattr(part, name) for part in parts) for name in _SUMS},
        key=parts[0].key,
        ledger=summed(part.ledger for part in parts),
        account=summed(part.account for part in parts),
        account_base=parts[0].account_base,
        waited=[Waited(*pair, ns) for pair, ns in waited.items()],
    )


_SUMS = (
    *("compute_ns", "exposed_comm_ns", "exposed_copy_ns", "idle_ns", "outside_ns"),
    *("late_ns", "late_kept_ns", "returned_ns", "graphs_ns"),
)
