"""Markers for `Annotated` that declare what a field of a record holds, and short names for common ones.

```
busy_ns: TotalNs                           nanoseconds that add up over the window
name: KernelName                           replaced in a report without names
packed: Annotated[Packed, NO_BUDGET]       no figure of the device
```

`leaves` reads the markers. Redaction, budgets, tables, gauges and the JSON Schema follow from them. Markers of numbers
are part of the schema: the unit is `x-unit`, and a number out of its range is rejected when read.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, StrEnum, auto
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeAlias, get_args, get_origin, get_type_hints

from msgspec import Meta

from nsysdiag.limits import MOST_BUCKETS
from nsysdiag.typed import TextKind as TextKind  # noqa: PLC0414


class NumberUnit(StrEnum):
    """The unit of a number."""

    NS = "ns"
    SHARE = "share"
    COUNT = "count"
    BYTES = "bytes"
    BYTES_PER_SECOND = "bytes/s"
    PER_SECOND = "1/s"
    HZ = "Hz"
    SECONDS = "s"
    HOURS = "h"
    PPM = "ppm"
    RATIO = "ratio"
    MONEY = "currency"
    NUMBER = "number"
    VARIES = "varies"


class BudgetRule(Enum):
    """How budgets treat a field, if its unit does not say."""

    NEVER = auto()
    ZERO_IF_NONE = auto()


class WhyNone(NamedTuple):
    """Why a field of a device is None and what would fill it, for a budget that cannot be judged."""

    text: str


class Needs(NamedTuple):
    """The kind of evidence (see trace/capabilities) without which the numbers in a field mean nothing."""

    kind: str


def _of(unit: NumberUnit) -> Meta:
    return Meta(extra_json_schema={"x-unit": unit})


NS = _of(NumberUnit.NS)
SHARE = _of(NumberUnit.SHARE)
"""0..1."""
COUNT = _of(NumberUnit.COUNT)
BYTES = _of(NumberUnit.BYTES)
BYTES_PER_SECOND = _of(NumberUnit.BYTES_PER_SECOND)
PER_SECOND = _of(NumberUnit.PER_SECOND)
HZ = _of(NumberUnit.HZ)
SECONDS = _of(NumberUnit.SECONDS)
HOURS = _of(NumberUnit.HOURS)
PPM = _of(NumberUnit.PPM)
RATIO = _of(NumberUnit.RATIO)
MONEY = _of(NumberUnit.MONEY)
"""In the currency of the record."""
NUMBER = _of(NumberUnit.NUMBER)
"""Identifies something, or is its place in a list: no amount."""
VARIES = _of(NumberUnit.VARIES)
"""The name in the record, or the key of the dictionary."""
SUM = Meta(extra_json_schema={"x-adds-up": True})
"""A sum over the time of the window, which can be divided by the window and by iterations."""
MOMENT = Meta(ge=-(2**62), le=2**62, description="A moment on the clock of the trace.")
"""Within 146 years of 0, so that the time between two fits into 64 bits."""
NOT_NEGATIVE = Meta(ge=0)
POSITIVE = Meta(ge=1)
"""The total that other fields are divided by."""
NO_BUDGET = BudgetRule.NEVER
"""Layout of the report, not a figure of the device: no budget can use it, nor anything in it."""
ZERO_IF_NONE = BudgetRule.ZERO_IF_NONE
"""None if nothing of the kind happened: what adds up in it is 0 then."""

Ns = Annotated[int, NS]
TotalNs = Annotated[int, NS, SUM]
Period = Annotated[int, NS, POSITIVE]
Moment = Annotated[int, NS, MOMENT]
Share = Annotated[float, SHARE]
Count = Annotated[int, COUNT, NOT_NEGATIVE]
TotalCount = Annotated[int, COUNT, NOT_NEGATIVE, SUM]
Buckets = Annotated[int, COUNT, Meta(ge=0, le=MOST_BUCKETS), NO_BUDGET]
"""Of a series."""
MeanCount = Annotated[float, COUNT]
Bytes = Annotated[int, BYTES]
TotalBytes = Annotated[int, BYTES, SUM]
BytesPerSecond = Annotated[float, BYTES_PER_SECOND]
PerSecond = Annotated[float, PER_SECOND]
Hertz = Annotated[int, HZ]
Ratio = Annotated[float, RATIO]
Money = Annotated[float, MONEY]
Number = Annotated[int, NUMBER]
Index = Annotated[int, NUMBER, NOT_NEGATIVE]
"""The place in a list, from 0 up."""
Varying = Annotated[float, VARIES]

OwnText = Annotated[str, TextKind.OWN]
CauseId = Annotated[str, TextKind.OWN]
Base64 = Annotated[str, TextKind.OWN]
FinishedSentence = Annotated[str, TextKind.SENTENCE]
KernelName = Annotated[str, TextKind.KERNEL]
RangeName = Annotated[str, TextKind.RANGE]
SymbolName = Annotated[str, TextKind.SYMBOL]
ModuleName = Annotated[str, TextKind.MODULE]
ThreadName = Annotated[str, TextKind.THREAD]
ProcessName = Annotated[str, TextKind.PROCESS]
FileName = Annotated[str, TextKind.FILE]
RankName = Annotated[str, TextKind.RANK]
GpuName = Annotated[str, TextKind.GPU]
RowName = Annotated[str, TextKind.ROW]
IterationName = Annotated[str, TextKind.ITERATION]
PackedNames = Annotated[str, TextKind.PACKED]
Version = Annotated[str, TextKind.VERSION]
Currency = Annotated[str, TextKind.CURRENCY]
FileHash = Annotated[str, TextKind.HASH]
HashedId = Annotated[str, TextKind.ID]
if TYPE_CHECKING:  # a Phrase until the report is finished, see `typed`
    from nsysdiag.typed import Sentence as Sentence  # noqa: PLC0414

    ApiName: TypeAlias = Sentence
    CallName: TypeAlias = Sentence
    NsysWarning: TypeAlias = Sentence
    NamedIteration: TypeAlias = Sentence
else:
    Sentence = FinishedSentence
    ApiName = Annotated[str, TextKind.API]
    CallName = Annotated[str, TextKind.CALL]
    NsysWarning = Annotated[str, TextKind.WARNING]
    NamedIteration = IterationName
NsByCause = dict[CauseId, TotalNs]
NsByLabel = Annotated[dict[str, dict[str, TotalNs]], TextKind.LABELS]
RowsByTable = Annotated[dict[str, Count | str], TextKind.TABLE]
_PlainSetting = bool | Annotated[int, VARIES] | Annotated[float, VARIES] | str
_ListSetting = list[Annotated[int, VARIES] | str | None]
_SettingsByName = dict[str, _PlainSetting | dict[str, _PlainSetting]]
SettingValue = Any
"""A setting in JSON: several values are a list; thresholds and prices are keyed by name."""
ValueBySetting = Annotated[dict[str, _PlainSetting | _ListSetting | _SettingsByName | None], TextKind.SETTINGS]


_NONE = type(None)


class Leaf(NamedTuple):
    """A type inside the type of a field that has no further ones, with all markers around it, the outermost first."""

    kind: Any
    markers: tuple[object, ...]

    @property
    def text(self) -> TextKind | None:
        """Its kind of text; the outermost marker counts."""
        return next((each for each in self.markers if isinstance(each, TextKind)), None)

    @property
    def unit(self) -> NumberUnit | None:
        """Its unit as a number."""
        schemas = (each.extra_json_schema or {} for each in self.markers if isinstance(each, Meta))
        return next((each["x-unit"] for each in schemas if "x-unit" in each), None)


@cache
def fields_of(record: type) -> dict[str, Any]:
    """The types of its fields by name, with their markers."""
    return get_type_hints(record, include_extras=True)


def markers_of(record: type, field: str) -> tuple[object, ...]:
    """The markers of a field as a whole."""
    return getattr(fields_of(record)[field], "__metadata__", ())


def leaves(hint: Any, markers: tuple[object, ...] = (), *, deep: bool = True) -> Iterator[Leaf]:
    """All leaves of the type of a field; without `deep` none of those in lists, tuples and dictionaries."""
    origin = get_origin(hint)
    if origin is Annotated:
        yield from leaves(hint.__origin__, markers + hint.__metadata__, deep=deep)
    elif origin is None:
        yield Leaf(hint, markers)
    elif deep or origin not in (list, tuple, dict):
        for part in get_args(hint):
            yield from leaves(part, markers, deep=deep)


def leaves_at(record: type, path: str) -> list[Leaf]:
    """The leaves of the field at a dotted path, such as `churn.calls`, without those in lists, tuples and dictionaries.
    One of None if a record on the way may be None."""
    found: list[Leaf] = []
    holder, empty = record, []
    for name in path.split("."):
        found = list(leaves(fields_of(holder)[name], deep=False))
        empty += [leaf for leaf in found if leaf.kind is _NONE]
        found = [leaf for leaf in found if leaf.kind is not _NONE]
        holder = found[0].kind if found else object
    return found + empty[:1]


def value_at(record: object, path: str) -> Any:
    """The value of the field at a dotted path, None if a record on the way is None."""
    for name in path.split("."):
        if record is None:
            return None
        record = getattr(record, name)
    return record
