"""The real nsys reads a slice as it reads any export: the program is the one that NSYSDIAG_NSYS names."""

from __future__ import annotations

import csv
import gzip
import os
import subprocess
from pathlib import Path

import pytest

from nsysdiag import analyze
from tests.share.bundle.bundling import sliced

FIXTURES = Path(__file__).parents[2] / "fixtures"


@pytest.mark.nsys
def test_it_counts_the_kernels_of_a_slice(tmp_path: Path) -> None:
    source = tmp_path / "trace.sqlite"
    source.write_bytes(gzip.decompress((FIXTURES / "sim_launch_bound.sqlite.gz").read_bytes()))
    part = sliced(source, tmp_path / "slices").path
    program = Path(os.environ["NSYSDIAG_NSYS"])
    command = [program, "stats", "-r", "cuda_gpu_kern_sum", "--format", "csv", "-q", part]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=True)
    lines = done.stdout[done.stdout.index("Time (%)") :].splitlines()
    counted = {row["Name"]: (int(row["Instances"]), int(row["Total Time (ns)"])) for row in csv.DictReader(lines)}
    (device,) = analyze(part).devices
    assert counted == {row.name: (row.count, row.total_ns) for row in device.kernels}
