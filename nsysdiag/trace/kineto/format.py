"""The format of the PyTorch profiler (Kineto): JSON, packed by gzip or not, which becomes the tables of an export."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysdiag.trace.format import InputFormat
from nsysdiag.trace.kineto.file import GZIP_MAGIC, MARK, is_kineto_trace

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.trace.format import Conversion


def _converted(path: Path, how: Conversion) -> Path:
    from nsysdiag.trace.kineto.tables import convert

    target = how.folder / "trace.sqlite"
    for warning in convert(path, target):
        how.warn(warning)
    how.warn(
        "traces of the PyTorch profiler have no OS calls, scheduling or CPU samples: what the host waited for "
        "is not in them"
    )
    return target


FORMAT = InputFormat(
    id="kineto",
    noun="JSON of the PyTorch profiler",
    suffixes=(".pt.trace.json.gz", ".pt.trace.json", ".trace.json.gz", ".trace.json", ".json.gz", ".json"),
    is_one=lambda path, head: head.lstrip().startswith((b"{", b"[", GZIP_MAGIC)) and is_kineto_trace(path),
    by_name=False,
    converted=_converted,
    mark=MARK,
    kinds=("kernels", "copies", "cuda-api", "synchronization", "nvtx", "overhead", "device-map"),
    lacks="not in traces of the PyTorch profiler",
    amid_run=True,
)
