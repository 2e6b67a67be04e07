"""What a repair would bring: reads a trace, analyses it, and replays its judged time with something changed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nsysdiag.config.settings import Settings
from nsysdiag.pipeline.stages import Progress
from nsysdiag.replay.facts import Transform, WhatIf


def whatif(
    path: str | Path,
    transforms: Sequence[Transform] = (),
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> WhatIf:
    """The prediction with all these transforms together; without any, what each finding would bring.

    Raises UsageError where a transform matches nothing, with near names, and what `analyze` raises."""
    raise NotImplementedError
