"""The sentences about a prediction: its headline to paste, and how far the model can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.diagnosis.facts import CANNOT_TELL, PACED, between
from nsysdiag.document.words import counted
from nsysdiag.replay.options import text_of
from nsysdiag.units import capitalized, format_ns, format_share, format_speedup, format_two_ns

if TYPE_CHECKING:
    from nsysdiag.replay.facts import Saving, WhatIf

TITLE = "What if"
CAVEAT = (
    "Not predicted: contention for clocks, memory bandwidth and SMs; data dependencies that the trace does not show."
)


def headline(found: WhatIf) -> str:
    """One line: how long it takes now and would take, and with which changes."""
    now = f"{length_name(found)} {format_ns(found.now_ns)}"
    if found.refused is not None:
        options = f" for {text_of(found.transforms)}" if found.transforms else ""
        said = f"no prediction{options}: {found.refused}"
        return f"{now}; {said}" if found.now_ns else capitalized(said)
    if not found.transforms:
        return f"{now}; {_best(found)}"
    if found.cannot_tell:
        bounds = format_two_ns(found.low_ns, found.high_ns, " and ")
        return f"{now}; anywhere between {bounds} with {text_of(found.transforms)}: {CANNOT_TELL}"
    between = f"between {format_two_ns(found.low_ns, found.high_ns, ' and ')}"
    change = f"({format_speedup(found.now_ns, found.predicted_ns)}, {between})"
    both = format_two_ns(found.now_ns, found.predicted_ns, " → ")
    return f"{length_name(found)} {both} predicted {change}: {text_of(found.transforms)}"


def _best(found: WhatIf) -> str:
    """What the best fix of one finding brings, and all together."""
    best = min(single(found), key=lambda each: each.predicted_ns, default=None)
    floor = f", {format_ns(found.floor_ns)} with all (the floor)" if found.floor_ns is not None else ""
    if best is None:
        return f"no finding has a predicted saving{floor}"
    return f"predicted {format_ns(best.predicted_ns)} with the best single fix{floor}"


def single(found: WhatIf) -> list[Saving]:
    """The savings of one finding each that are predicted."""
    alone = [each for each in found.savings if each.finding is not None and each.refused is None]
    return [each for each in alone if not each.cannot_tell]


def length_name(found: WhatIf) -> str:
    """What is predicted."""
    return "Step time" if found.per == "step" else "Window"


def replayed(found: WhatIf) -> str:
    """What was replayed, what the changes save of it, and how well the model reproduces the trace."""
    if not found.steps and found.refused is not None:
        return "Nothing was replayed."
    what = counted(found.steps, "step") if found.per == "step" else "the window"
    paced = f"{PACED.format(format_ns(found.paced_ns))} " if found.paced_ns else ""
    return f"{paced}{_saved(found)}Replayed {what}; {_identity(found)}"


def _saved(found: WhatIf) -> str:
    if not found.transforms or found.refused is not None or found.now_ns <= 0:
        return ""
    of = "a step" if found.per == "step" else "the window"
    low, high = found.now_ns - found.high_ns, found.now_ns - found.low_ns
    if high <= 0:
        return ""
    low = max(low, 0)
    if found.cannot_tell:
        return f"Saves anywhere {between(low, high, found.now_ns)} of {of}: {CANNOT_TELL}. "
    return f"Saves {format_share(low, found.now_ns)} to {format_share(high, found.now_ns)} of {of}. "


def _identity(found: WhatIf) -> str:
    if found.identity is None:
        return "how well the model reproduces it is unknown."
    of = "step" if found.per == "step" else "window"
    return f"the model is within {format_share(abs(found.identity.length_error), 1)} of the recorded {of}."


def broken_identity(found: WhatIf) -> str:
    """A warning where the replay of what was recorded is not what was recorded; else empty."""
    if found.identity is None or found.identity.exact:
        return ""
    return "With nothing changed, the replay does not reproduce every recorded start and end."


def floor(found: WhatIf) -> str:
    """What stays when all findings are fixed; empty where that is not known."""
    if found.floor_ns is None:
        return ""
    share = f" ({format_share(found.floor_ns, found.now_ns)})" if found.now_ns > 0 else ""
    return f"{format_ns(found.floor_ns)}{share} remain when all of them are fixed: the kernels and their order."
