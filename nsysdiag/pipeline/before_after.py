"""Captures before and after a change in, a comparison out."""

from __future__ import annotations

import os
from collections.abc import Sequence

from nsysdiag.comparison.facts import Comparison
from nsysdiag.comparison.pairing import require_names
from nsysdiag.comparison.predicted import compare_sides
from nsysdiag.pipeline import analyze
from nsysdiag.replay.facts import WhatIf
from nsysdiag.report import Report

Capture = Report | WhatIf | str | os.PathLike[str]
Side = Capture | Sequence[Capture]
"""One or several captures of a program: reports, or paths of traces. Or a prediction alone."""


def compare(before: Side, after: Side, *, across_gpus: bool = False) -> Comparison:
    """Compare one or several captures before with one or several after: reports, or the traces that they are made of.
    A prediction may stand for a side. Raises NotComparableError where there is no unit of work in common, the GPUs are
    of different models, names were replaced by other ones or a prediction was refused, UsageError for a prediction that
    changes nothing or is not alone, InputError for what is no export."""
    left, right = _reports(before), _reports(after)
    require_names([*left, *right])
    return compare_sides(left, right, across_gpus=across_gpus)


def _reports(side: Side) -> list[Report | WhatIf]:
    captures = [side] if isinstance(side, str | os.PathLike | Report | WhatIf) else side
    return [capture if isinstance(capture, Report | WhatIf) else analyze(capture) for capture in captures]
