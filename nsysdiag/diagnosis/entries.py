"""Each GPU of the judged time in a row: what it did, what took most of its time, and where the two are counted
differently."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec.structs import replace

from nsysdiag.diagnosis.chart import account_stack, accounts, longest_part
from nsysdiag.diagnosis.facts import KERNELS
from nsysdiag.document.blocks import PAGE, Block, Column, Limit, Paragraph, Table
from nsysdiag.document.kinds import NAME, SHARE, STACK, TEXT, part

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nsysdiag.phases.facts import PhaseDevice

    Judged = Mapping[str, Sequence[PhaseDevice]]
    """By device what it did in the judged phases."""

SPLIT = ("compute_ns", "exposed_comm_ns", "exposed_copy_ns", "idle_ns")
NAMED = Column("GPU", NAME, head=True, length=24)
LATE = Column("For late peers", SHARE)
PAGING = Column("Paging in kernels", SHARE)
BY_BOTTLENECK = Column("By bottleneck", STACK, limit=PAGE)
GPU, JOINED_LENGTH = "gpu", 40
_GPU = re.compile(r"gpu\d+")
WRITTEN_OUT = 2
"""So many numbers in a row are not shortened."""
SEEN = 0.001
"""Of a GPU's time: less is not worth a sentence."""
FOR_PEERS = "For late peers: Comm. kernels that wait for late GPUs; charged to what made those late, if known."
WAITS_COUNT = "By bottleneck, a wait for another GPU is charged to what that GPU did meanwhile."
INSIDE_MPI = "Idle time inside MPI calls is charged to communication."


def account_table(
    judged: Judged, title: str, limit: Limit, named: Column = NAMED, noun: str = "", *, host_unseen: bool = False
) -> list[Block]:
    """A row for each device, and what counts elsewhere than its column says. A single one has no bar, as the one of the
    job is above."""
    waits, pages = _reaches(judged, _late), _reaches(judged, _paged)
    columns = [
        named,
        Column("Compute", SHARE),
        *([PAGING] if pages else []),
        Column("Comm. kernels", SHARE),
        *([LATE] if waits else []),
        Column("Copies", SHARE),
        Column("Idle", SHARE),
        Column("Most time", TEXT),
        Column("Share", SHARE),
        *([BY_BOTTLENECK] if len(judged) > 1 else []),
    ]
    table = Table(title, tuple(columns), _rows(judged, waits=waits, pages=pages, host_unseen=host_unseen), limit=limit)
    notes = [FOR_PEERS] if waits else []
    notes += [WAITS_COUNT] if any(each.waited for phases in judged.values() for each in phases) else []
    notes += [INSIDE_MPI] if _reaches(judged, _in_mpi) else []
    said = [Paragraph(" ".join(notes), "quiet", limit)] if notes else []
    return [replace(table, noun=noun) if noun else table, *said]


def joined(blocks: Sequence[Block]) -> list[Block]:
    """The blocks of `account_table` with one row for all GPUs that show the same figures, in the place of the first:
    `gpu0–4, 6, 7`. For text: the page keeps a row, and a bar, for each."""
    return [_joined(each) if isinstance(each, Table) else each for each in blocks]


def _joined(table: Table) -> Table:
    shown = [at for at, column in enumerate(table.columns) if at and column is not BY_BOTTLENECK]
    same: dict[tuple[str, ...], list[Sequence[object]]] = {}
    for row in table.rows:
        apart = "" if _GPU.fullmatch(str(row[0])) else str(row[0])
        same.setdefault((apart, *(table.columns[at].kind.text(row[at]) for at in shown)), []).append(row)
    rows = [(_numbered([str(row[0]) for row in group]), *group[0][1:]) for group in same.values()]
    return replace(table, columns=[replace(table.columns[0], length=JOINED_LENGTH), *table.columns[1:]], rows=rows)


def _numbered(keys: Sequence[str]) -> str:
    """`gpu0–4, 6, 7` for several GPUs; a single key as it is."""
    if len(keys) == 1:
        return keys[0]
    runs: list[list[int]] = []
    for number in sorted(int(each.removeprefix(GPU)) for each in keys):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    said = [f"{run[0]}–{run[-1]}" if len(run) > WRITTEN_OUT else ", ".join(map(str, run)) for run in runs]
    return GPU + ", ".join(said)


def _paged(device: PhaseDevice) -> int:
    """The time of kernels that is charged to memory: unified memory is paged inside them."""
    kernels = sum(device.account.get(name, 0) for name in KERNELS)
    return min(max(device.compute_ns - kernels, 0), device.account.get("memory", 0))


def _rows(judged: Judged, *, waits: bool, pages: bool, host_unseen: bool) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    order = accounts([each for phases in judged.values() for each in phases])  # the same in all rows
    for key, phases in judged.items():
        parts, paged = [_sum(phases, name) for name in SPLIT], sum(map(_paged, phases))
        account, whole = accounts(phases), sum(parts)
        total = sum(account.values())
        what, longest_ns = longest_part(phases, host_unseen=host_unseen)
        bar = account_stack(
            {name: account.get(name, 0) for name in order},
            f"How the judged time of {key} divides by bottleneck",
            host_unseen=host_unseen,
        )
        shown = [parts[0] - paged, *([paged] if pages else []), parts[1]]
        shown += [*([sum(map(_late, phases))] if waits else []), *parts[2:]]
        rows.append((key, *(part(each, whole) for each in shown), what, part(longest_ns, total), bar))
    return rows


def _sum(phases: Sequence[PhaseDevice], name: str) -> int:
    return sum(getattr(each, name) for each in phases)


def _reaches(judged: Judged, time: Callable[[PhaseDevice], int]) -> bool:
    """Whether it is a visible part of the time of some device."""
    return any(sum(map(time, phases)) > SEEN * sum(_sum(phases, name) for name in SPLIT) for phases in judged.values())


def _late(device: PhaseDevice) -> int:
    """What it waited for late ones, whatever that is charged to."""
    return device.late_ns + device.late_kept_ns


def _in_mpi(device: PhaseDevice) -> int:
    """Communication beyond what its kernels took, and beyond that of GPUs that it waited for."""
    elsewhere = sum(each.ns for each in device.waited if each.bottleneck == "communication")
    return device.account.get("communication", 0) + device.late_ns - device.exposed_comm_ns - elsewhere
