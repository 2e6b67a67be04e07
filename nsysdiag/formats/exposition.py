"""Text that Prometheus and OpenMetrics parsers both read: gauges with labels, without features of only one of them.

```
# HELP nsysdiag_idle_seconds Time in which nothing ran.
# TYPE nsysdiag_idle_seconds gauge
# UNIT nsysdiag_idle_seconds seconds
nsysdiag_idle_seconds{device="gpu0"} 0.040
# EOF
```

An info metric is a gauge of 1 here: the type `info` is unknown to the parser of the node exporter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from msgspec import Struct

from nsysdiag.units import NS_PER

PREFIX = "nsysdiag_"
Labels = tuple[tuple[str, str], ...]


class Sample(Struct, frozen=True):
    """One value: a whole number, a fraction, or exact text from `seconds`. None is left out, for it was not
    measurable."""

    labels: Labels
    value: int | float | str | None


class Family(Struct, frozen=True):
    """All samples of one metric. `name` is without the prefix; it ends in `unit` where there is one."""

    name: str
    help: str
    unit: str
    samples: list[Sample]


def exposition(families: Iterable[Family]) -> bytes:
    """The families that have samples, in order, as UTF-8."""
    lines: list[str] = []
    for family in families:
        name = PREFIX + family.name
        samples = [line for sample in family.samples if (line := _sample(name, sample))]
        if samples:
            unit = [f"# UNIT {name} {family.unit}"] if family.unit else []
            lines += [f"# HELP {name} {_escaped(family.help)}", f"# TYPE {name} gauge", *unit, *samples]
    return "\n".join([*lines, "# EOF", ""]).encode()


def seconds(ns: int) -> str:
    """Nanoseconds as seconds, with all nine digits."""
    sign, size = ("-", -ns) if ns < 0 else ("", ns)
    return f"{sign}{size // NS_PER['s']}.{size % NS_PER['s']:09d}"


def clean(value: str) -> str:
    """A label's value without what does not print; line ends stay, they are escaped."""
    return "".join(each for each in value if each.isprintable() or each == "\n")


def _sample(name: str, sample: Sample) -> str:
    """The line of a sample; empty where it has no value."""
    value = sample.value
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    labels = ",".join(f'{label}="{_escaped(clean(text))}"' for label, text in sample.labels)
    return f"{name}{{{labels}}} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
