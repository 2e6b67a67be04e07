"""The command line that makes a report: from its settings, so that a saved one still knows it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from nsysdiag.comparison.facts import Comparison
from nsysdiag.document.command import options_of, whatif_command
from nsysdiag.ranks.report import RanksReport
from nsysdiag.replay.facts import WhatIf

if TYPE_CHECKING:
    from nsysdiag.report import Report

AFTERWARDS = ("config", "cost")
"""What a saved report can still be given: a price. The other options change the analysis."""


def command_of(document: Report | RanksReport | Comparison | WhatIf) -> str:
    """`nsysdiag analyze`, `ranks`, `compare` or `whatif` with the files, by their names alone, and the options
    that differ from their defaults."""
    if isinstance(document, Comparison):
        (before, *more_before), (after, *more_after) = (
            [trace.given or trace.file for trace in side] for side in (document.before, document.after)
        )
        words = ["compare", before, after]
        words += [word for file in more_before for word in ("--before", file)]
        words += [word for file in more_after for word in ("--after", file)]
        words += ["--across-gpus"] if document.across_gpus else []
    elif isinstance(document, RanksReport):
        words = ["ranks", *(trace.file for trace in document.traces)]
    elif isinstance(document, WhatIf):
        return whatif_command(document.trace.file, document.transforms, document.settings)
    else:
        words = ["analyze", document.trace.file]
    return shlex.join(["nsysdiag", *words, *options_of(document.settings)])
