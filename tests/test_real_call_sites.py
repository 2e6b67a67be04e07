"""Call sites in real traces: every function that is named stands in the table that is said to have told."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from nsysdiag.events.callchains import TABLES, Origin, file_name
from nsysdiag.report import CallSite, DeviceReport
from tests.shared import Shared

FOLDER = Path(os.environ.get("NSYSDIAG_TRACES", "nowhere"))
TRACES = {
    "gpubootcamp_mpi-report2_v100": {"sampling"},
    "mordred_rtx6000_nsys-old": {"osrt"},
    "nways_jacobi-memcoherent_gh200_nsys2023.4.1": {"sampling"},
    "pipit_cloverleaf_a100x4_nsys2024.5": {"osrt", "sampling"},
    "pipit_saxpy-mpi_a100_nsys2022.2": {"cuda", "sampling"},
    "nsysai_mfu-2gpu-after_nsys2026.2": set(),
}
"""What tells of the gaps of each trace."""

pytestmark = pytest.mark.real


def functions(path: Path, source: str) -> set[tuple[str, str]]:
    """Every function and the file name of its module in a table of call chains; empty names for addresses."""
    sql = (
        f"SELECT DISTINCT s.value, m.value FROM {TABLES[source]} c "
        "JOIN StringIds s ON s.id = c.symbol JOIN StringIds m ON m.id = c.module"
    )
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
        rows = connection.execute(sql).fetchall()
    return {("" if symbol.startswith("0x") else symbol, file_name(module)) for symbol, module in rows}


def sites(device: DeviceReport) -> list[CallSite]:
    found = [row.call_site for row in (*device.gaps, *device.signatures)]
    return [site for site in found if site is not None]


@pytest.mark.sampled(normal=5)
@pytest.mark.parametrize("name", TRACES)
def test_the_functions_stand_in_the_tables(name: str, shared: Shared) -> None:
    path = FOLDER / f"{name}.sqlite"
    found = [site for device in shared.report(path).devices for site in sites(device)]
    assert {site.source for site in found} == TRACES[name]
    known = {source: functions(path, source) for source in TRACES[name]}
    for site in found:
        assert {(frame.symbol, frame.module) for frame in site.frames} <= known[site.source]
        assert 0 < site.chains <= site.of
        assert len(site.frames) == 1 or site.own


@pytest.mark.parametrize("name", [name for name, sources in TRACES.items() if sources])
def test_the_program_is_told_from_libraries(name: str, shared: Shared) -> None:
    found = [site for device in shared.report(FOLDER / f"{name}.sqlite").devices for site in sites(device)]
    modules = {frame.module for site in found if site.own for frame in site.frames}
    assert modules
    assert not [module for module in modules if module.startswith(("lib", "ld-", "["))]
    assert any(frame.symbol == "main" for site in found if site.own for frame in site.frames)


def test_host_code_of_signatures_is_shared_out(shared: Shared) -> None:
    (device,) = shared.report(FOLDER / "pipit_saxpy-mpi_a100_nsys2022.2.sqlite").devices
    rows = [row for row in device.signatures if row.host_code]
    assert {row.cause for row in rows} == {"host_compute"}
    for row in rows:
        assert row.host_code[0].symbol == "main"
        assert row.host_code[0].kind == Origin.PROGRAM
        assert 0.5 < sum(each.share for each in row.host_code) <= 1
        assert [each.share for each in row.host_code] == sorted((each.share for each in row.host_code), reverse=True)
