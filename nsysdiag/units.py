"""Nanoseconds and bytes to text and back: the one place that formats numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

from nsysdiag import typed
from nsysdiag.fields import Sentence
from nsysdiag.messages import UsageError

NS_PER = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
BYTES_PER: dict[str, int] = {"": 1, "B": 1} | {
    f"{letter}{rest}": (1000 if rest == "B" else 1024) ** power
    for power, letter in enumerate("KMGT", 1)
    for rest in ("", "B", "IB")
}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")
_TIME = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*(ns|us|µs|ms|s)?\s*")


def format_ns(ns: int) -> str:
    """A duration to three significant digits in the unit that suits it: `1.23 ms`. `0 ns` stays exact."""
    size = abs(ns)
    for unit, scale in (("s", NS_PER["s"]), ("ms", NS_PER["ms"]), ("µs", NS_PER["µs"])):
        if size >= scale * 0.9995:
            return f"{_three_digits(ns / scale)} {unit}"
    return f"{ns} ns"


def _three_digits(value: float) -> str:
    size = abs(value)
    if size >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 9.995 else f"{value:.2f}"


def format_exact_ns(ns: int) -> str:
    """A time with all its digits, in groups of three: `1,234,567 ns`."""
    return f"{ns:,} ns"


def format_moment(ns: int) -> str:
    """A point in time of the trace's clock, in seconds with all nine digits: `12.345678901 s`."""
    return f"{decimal(ns, 9, ',')} s"


def decimal(number: int, places: int, group: str = "") -> str:
    """A whole number with its last digits behind the point, exact: `decimal(1_234_567, 3)` is `1234.567`."""
    sign, (whole, rest) = "-" if number < 0 else "", divmod(abs(number), 10**places)
    return f"{sign}{whole:{group}}.{rest:0{places}d}"


def format_share(part: int | float, whole: int | float) -> str:
    """`part` of `whole` in per cent; a part that is not zero never shows as 0%, one that is not all never as 100%."""
    if whole == 0:
        return "–"
    share = 100 * part / whole
    if 0 < share < 0.1:
        return "<0.1%"
    if 99.95 <= share < 100:
        return "99.9%"
    return f"{share:.1f}%"


NOTABLE = 0.1
"""Share of a whole from which on the largest of its parts is named at all."""


def mostly(parts: Iterable[tuple[Sentence, float]], whole: float, of: float = 1.0) -> Sentence:
    """`mostly read in load`: the first of `parts` (a name and its size) that is more than half of `whole`, sizes in one
    unit. Otherwise the largest with its own share of `of`, as `read 20.1%`; empty if it is under a tenth of `whole`."""
    known = list(parts)
    for name, size in known:
        if 2 * size > whole:
            return "mostly " + name
    name, size = max(known, key=lambda part: part[1], default=("", 0))
    return name + f" {format_share(size, of)}" if size > 0 and size >= NOTABLE * whole else ""


def format_transfer(size: float) -> str:
    """Bytes as links and memories are sold: `246 MB`, `4.53 GB`, in powers of ten."""
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= 0.9995 * factor:
            return f"{_three_digits(size / factor)} {unit}"
    return f"{size:.0f} B"


def format_rate(rate: float) -> str:
    """Bytes a second in powers of ten, as the limits of links and memories are given: `31.5 GB/s`."""
    return f"{format_transfer(rate)}/s"


def format_signed_ns(ns: int) -> str:
    """A change of a time with its sign: `+1.23 ms`; no change has none."""
    return f"{'+' if ns > 0 else ''}{format_ns(ns)}"


def format_signed_share(change: int | float, before: int | float) -> str:
    """A change in per cent of what was before, with its sign; `new` if there was nothing. Next to none has none."""
    if before == 0:
        return "new" if change else "–"
    share = format_share(abs(change), before)
    return share if share.startswith("<") or not change else f"{'+' if change > 0 else '-'}{share}"


def format_two_ns(first: int, second: int, between: str) -> str:
    """Two durations, with both units if they are not the same: `18.5 to 19.6 ms`."""
    one, two = format_ns(first), format_ns(second)
    number, _blank, unit = one.partition(" ")
    return f"{number if two.endswith(f' {unit}') else one}{between}{two}"


def format_speedup(before: int, after: int) -> str:
    """How much less or more time something takes: `1.85× faster`; a factor that would read as 1.00 is none."""
    if before <= 0 or after <= 0:
        return "no factor: nothing is left"
    if abs(after - before) < 0.005 * before:
        return "no change"
    return f"{before / after:.2f}× faster" if after < before else f"{after / before:.2f}× slower"


def format_bytes(size: float) -> str:
    """A size in powers of 1024: `1.50 MiB`."""
    for unit, scale in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= scale:
            return f"{_three_digits(size / scale)} {unit}"
    return f"{size:.0f} B"


def format_money(amount: float, currency: str) -> str:
    """An amount of money: whole from ten thousand on, with cents from one on, else three significant digits."""
    size = abs(amount)
    if size >= 9_999.5:
        return f"{amount:,.0f} {currency}"
    if size >= 0.995:
        return f"{amount:,.2f} {currency}"
    if size == 0:
        return f"0 {currency}"
    places = 2 - math.floor(math.log10(size))
    return f"{amount:.{places}f} {currency}"


def format_hertz(frequency: float) -> str:
    """A clock to three significant digits: `1.41 GHz`, `210 MHz`."""
    for unit, scale in (("GHz", 1e9), ("MHz", 1e6), ("kHz", 1e3)):
        if frequency >= scale * 0.9995:
            return f"{_three_digits(frequency / scale)} {unit}"
    return f"{frequency:.0f} Hz"


def format_count(count: int) -> str:
    """A count with thousands separated."""
    return f"{count:,}"


def parse_time(text: str) -> int:
    """Nanoseconds from `1500`, `1.5us`, `20 ms` or `3s`; a bare number is nanoseconds. Raises UsageError."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise UsageError(f"'{text}' is not a time", hint="write a number and a unit: 1500ns, 20us, 1.5ms or 3s")
    number, unit = match.groups()
    whole, _, fraction = number.lstrip("+-").partition(".")
    scale = NS_PER[unit or "ns"]
    ns = int(whole) * scale + (int(fraction) * scale // 10 ** len(fraction) if fraction else 0)
    return -ns if number.startswith("-") else ns


def parse_bytes(text: str) -> int:
    """Bytes from `500MB` (powers of 1000), `2GiB` or `2G` (powers of 1024), or a bare number. Raises UsageError."""
    match = _SIZE.fullmatch(text)
    scale = BYTES_PER.get(match[2].upper()) if match else None
    if match is None or scale is None:
        raise UsageError(f"'{text}' is not a size", hint="write a number and a unit: 500MB, 2GB or 1.5GiB")
    whole, _, fraction = match[1].partition(".")
    return int(whole) * scale + (int(fraction) * scale // 10 ** len(fraction) if fraction else 0)


def every_nth(period: int) -> str:
    """A distance in a sequence: `every 2nd`, `every 10th`, `every 21st`."""
    ending = "th" if period % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(period % 10, "th")
    return f"every {format_count(period)}{ending}"


def listed(names: Sequence[str]) -> str:
    """`gpu0`, `gpu0 and gpu1`, `gpu0, gpu1 and gpu2`."""
    return typed.plain(typed.listed(names))


def capitalized(text: str) -> str:
    """With a capital first letter; the others stay, as in `NVTX ranges`."""
    return text[:1].upper() + text[1:]


def uncapitalized(text: str) -> str:
    """As it stands inside a sentence: `another process had the GPU`, and still `OS memory calls`."""
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]
