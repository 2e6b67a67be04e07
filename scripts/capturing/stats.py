"""What the real nsys counts in a trace: kernels by their demangled name with count and total ns, CUDA API calls with
their count, NVTX ranges with the number of those that launched work and the ns of their projections."""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

TIME_LIMIT_S = 120


KERNELS, CALLS = ("cuda_gpu_kern_sum", "gpukernsum"), ("cuda_api_sum", "cudaapisum")
"""What nsys calls a report, now and until 2022."""
RANGES = "nvtx_gpu_proj_sum"
_OPERATOR_IDS = re.compile(r", (seq|op_id) = \d+(, |$).*")
"""What PyTorch puts behind the names of operators."""


def known(nsys: str, names: tuple[str, str]) -> str:
    """Which of the names of a report this nsys has."""
    command = [nsys, "stats", "--help-reports"]
    listed = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=False).stdout
    return names[1] if names[1] in listed and names[0] not in listed else names[0]


def report(nsys: str, trace: Path, name: str) -> list[dict[str, str]]:
    """The rows of one of nsys's own reports; none where the trace has no data for it. It gets a copy, since it leaves
    tables and views behind in a file that it reads."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "trace.sqlite"
        shutil.copyfile(trace, copy)
        command = [nsys, "stats", "--quiet", "--report", name, "--format", "csv", str(copy)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=TIME_LIMIT_S, check=True)
    header = max(done.stdout.find(first) for first in ("Time (%)", "Range,"))
    return [] if header < 0 else list(csv.DictReader(io.StringIO(done.stdout[header:])))


def figures(nsys: str, trace: Path) -> dict[str, list[list[str | int]]]:
    """What the tests compare, sorted by name."""
    kernels = report(nsys, trace, known(nsys, KERNELS))
    calls = report(nsys, trace, known(nsys, CALLS))
    return {
        "kernels": sorted([row["Name"], int(row["Instances"]), int(row["Total Time (ns)"])] for row in kernels),
        "api": sorted([row["Name"], int(row["Num Calls"])] for row in calls),
        "ranges": sorted([name, *sums] for name, sums in ranges(nsys, trace).items()),
    }


def ranges(nsys: str, trace: Path) -> dict[str, tuple[int, int]]:
    """The number of ranges that launched work and the ns of their projections, by name without ids of operators."""
    count, total = Counter[str](), Counter[str]()
    for row in report(nsys, trace, RANGES):
        name = _OPERATOR_IDS.sub("", row["Range"])
        count[name] += int(row["Range Instances"])
        total[name] += int(row["Total Proj Time (ns)"])
    return {name: (count[name], total[name]) for name in count}
