"""Traces of the PyTorch profiler: they say what the same export of nsys says, and hostile ones are refused."""

from __future__ import annotations

import gzip
import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from nsysdiag import analyze, compare
from nsysdiag.batch.inputs import find_inputs
from nsysdiag.messages import InputError
from nsysdiag.saved import is_saved_report
from nsysdiag.share.redaction import redacted
from nsysdiag.trace.format import MARK
from nsysdiag.trace.formats import stem_of
from nsysdiag.trace.kineto.functions import base_name
from tests.simulator import CUDA_ONLY
from tests.simulator.scenarios import SCENARIOS
from tests.trace.kineto_traces import document, only_recorded, write

if TYPE_CHECKING:
    from pathlib import Path

    from nsysdiag.report import Report

LACKING = {
    "malformed_rows": "an event that begins at 0 is one like any other",
    "query_spin": "the profiler does not record what a call returns",
    "unified_memory": "the profiler does not record page migrations",
}
SAMPLE = ("counted_training", "dispatch", "intra_graph", "pageable_copy", "stream_wait", "sync", "second_context")


def both(name: str, folder: Path) -> tuple[Report, Report] | None:
    """The reports of the export, of the tables that the profiler has, and of the profiler's trace. None for programs of
    several processes, of which the profiler writes a file each, and for those without kernels."""
    trace = SCENARIOS[name].run().write(folder / "a.sqlite", CUDA_ONLY)
    with closing(sqlite3.connect(trace)) as connection:
        try:
            rows = connection.execute("SELECT count(DISTINCT globalPid) FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchone()
        except sqlite3.OperationalError:
            return None
    if rows[0] != 1:
        return None
    made = write(document(trace), folder / "a.pt.trace.json.gz")
    only_recorded(trace)
    _begin_inside(trace)
    return analyze(trace), analyze(made)


def _begin_inside(trace: Path) -> None:
    """A capture in the middle of a run has no start-up, and a trace of the profiler is such a one."""
    with closing(sqlite3.connect(trace)) as connection:
        connection.execute("INSERT INTO META_DATA_EXPORT (name, value) VALUES (?, '1')", (MARK,))
        connection.commit()


def said(report: Report) -> dict[str, Any]:
    """What both must say alike. The profiler's trace has only GPUs with work, as others may be those of other ranks."""
    headline = report.diagnosis.headline.replace(" 1 of 2 GPUs is in use.", "") if report.diagnosis else ""
    return {
        "headline": headline,
        "ledgers": [(device.ledger, device.labels, device.window_ns) for device in report.devices],
        "kernels": [[(row.name, row.count, row.total_ns) for row in device.kernels] for device in report.devices],
        "findings": [(each.id, each.share) for each in report.findings],
    }


@pytest.mark.sampled
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in SAMPLE else pytest.mark.thorough) for name in SCENARIOS]
)
def test_it_says_what_the_export_says(name: str, tmp_path: Path) -> None:
    found = both(name, tmp_path)
    if found is None:
        return
    export, profiler = found
    if name in LACKING:
        assert said(export) != said(profiler), LACKING[name]
    else:
        assert said(export) == said(profiler)


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("profiler")
    return document(SCENARIOS["counted_training"].run().write(folder / "a.sqlite", CUDA_ONLY))


def torch_like(content: dict[str, Any]) -> dict[str, Any]:
    """With operators, Python functions, steps as torch.profiler names them, and what is not read."""
    events: list[dict[str, Any]] = []
    steps = 0
    for event in content["traceEvents"]:
        is_step = event["cat"] == "user_annotation" and event["name"].startswith("step")
        events.append({**event, "name": f"ProfilerStep#{steps}"} if is_step else event)
        steps += is_step
        if event["cat"] == "cuda_runtime":
            around = {**event, "ts": event["ts"] - 2, "dur": event["dur"] + 4, "args": {}}
            events.append({**around, "cat": "cpu_op", "name": "aten::mm"})
            events.append({**around, "cat": "python_function", "name": "model/layers.py(7): forward"})
            events.append({**event, "ph": "s", "cat": "ac2g", "name": "ac2g"})
    events.append({"ph": "M", "name": "process_name", "pid": events[0]["pid"], "tid": 0, "args": {"name": "python"}})
    return {**content, "traceEvents": events}


@pytest.mark.slow
def test_steps_operators_and_python_functions(content: dict[str, Any], tmp_path: Path) -> None:
    report = analyze(write(torch_like(content), tmp_path / "a.json"))
    assert report.diagnosis is not None
    assert "each step" in report.diagnosis.headline
    gap = max(report.devices[0].gaps, key=lambda each: each.end_ns - each.start_ns)
    assert gap.nvtx[0].startswith("ProfilerStep#")
    assert gap.call_site is not None
    assert [(frame.symbol, frame.module, frame.line) for frame in gap.call_site.frames] == [("forward", "layers.py", 7)]


def test_what_it_cannot_show_is_said(content: dict[str, Any], tmp_path: Path) -> None:
    report = analyze(write(content, tmp_path / "a.json"))
    why = {each.id: each.why for each in report.trace.capabilities}
    assert why["scheduling"] == why["os-runtime"] == "not in traces of the PyTorch profiler"
    assert any("PyTorch profiler" in warning for warning in report.trace.warnings)
    assert report.devices[0].name == "NVIDIA A100-SXM4-80GB"


@pytest.mark.slow
def test_two_of_them_are_compared(content: dict[str, Any], tmp_path: Path) -> None:
    slower = {**content, "traceEvents": [{**each, "ts": each["ts"] * 1.5} for each in content["traceEvents"]]}
    before, after = write(content, tmp_path / "a.json"), write(slower, tmp_path / "b.json.gz")
    assert compare(before, after).verdict == "regressed"


def test_it_is_told_from_a_saved_report(content: dict[str, Any], tmp_path: Path) -> None:
    made = write(content, tmp_path / "a.json")
    assert not is_saved_report(made)
    other = tmp_path / "b.json"
    other.write_text(json.dumps({"traceEvents of another": []}))
    assert is_saved_report(other)
    with pytest.raises(InputError, match="not a nsysdiag report"):
        analyze(other)


def test_a_folder_of_them_is_a_batch(content: dict[str, Any], tmp_path: Path) -> None:
    write(content, tmp_path / "rank0.pt.trace.json")
    write(content, tmp_path / "rank1.pt.trace.json.gz")
    (tmp_path / "other.json").write_text("{}")
    (tmp_path / "other.json.gz").write_bytes(gzip.compress(b"{}"))
    found = find_inputs([str(tmp_path)], tmp_path / "out")
    assert [each.path.name for each in found.inputs] == ["rank0.pt.trace.json", "rank1.pt.trace.json.gz"]
    assert stem_of(tmp_path / "rank1.pt.trace.json.gz") == "rank1"


@pytest.mark.slow
def test_names_are_redacted(content: dict[str, Any], tmp_path: Path) -> None:
    report = redacted(analyze(write(torch_like(content), tmp_path / "a.json")))
    assert "gemm" not in str([device.kernels for device in report.devices])


BAD: dict[str, Any] = {
    "times that are none": {"ts": "soon", "dur": None},
    "negative times": {"ts": -5, "dur": -1},
    "times beyond all": {"ts": 1e300, "dur": 1 << 2000},
    "numbers as text": {"args": {"correlation": "12", "device": "0", "stream": "x", "grid": [1]}},
    "no names": {"name": None},
    "numbers too large": {"pid": 1 << 80, "tid": 1 << 70, "args": {"correlation": 1 << 90, "bytes": 1 << 90}},
    "no thread": {"pid": None, "tid": ["a"]},
}


@pytest.mark.parametrize("change", BAD.values(), ids=BAD)
def test_odd_events_are_read_or_left_out(change: dict[str, Any], content: dict[str, Any], tmp_path: Path) -> None:
    odd = [{**each, **change} if at % 7 == 0 else each for at, each in enumerate(content["traceEvents"])]
    report = analyze(write({**content, "traceEvents": odd}, tmp_path / "a.json"))
    assert report.devices


@pytest.mark.parametrize(
    "text",
    [
        '{"schemaVersion": 1, "traceEvents": [',
        '{"schemaVersion": 1}',
        '{"schemaVersion": 1, "traceEvents": {}}',
        '{"schemaVersion": 1, "traceEvents": [1]}',
        '{"schemaVersion": 1, "traceEvents": [{"args": []}]}',
        '{"schemaVersion": 1, "traceEvents": [{"name": "\\ud800"}]}',
    ],
)
def test_damaged_ones_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(InputError, match="damaged trace of the PyTorch profiler"):
        analyze(tmp_path / "a.json")


def test_one_that_is_cut_is_refused(content: dict[str, Any], tmp_path: Path) -> None:
    made = write(content, tmp_path / "a.json.gz")
    made.write_bytes(made.read_bytes()[:-100])
    with pytest.raises(InputError, match="damaged trace"):
        analyze(made)


@pytest.mark.slow
@pytest.mark.parametrize(("event", "why"), [(b'{"ph":"X"},', "more than"), (b"{},", "events are empty")])
def test_bombs_are_refused(event: bytes, why: str, tmp_path: Path) -> None:
    head = b'{"schemaVersion": 1, "traceEvents": ['
    bomb = tmp_path / "a.json.gz"
    bomb.write_bytes(gzip.compress(head + event * (8_000_000 if why == "more than" else 1_000_000)))
    if why == "events are empty":
        bomb = tmp_path / "b.json"
        bomb.write_bytes(head + event * 1_000_000)
    with pytest.raises(InputError, match=why):
        analyze(bomb)


@pytest.mark.parametrize(
    ("whole", "short"),
    [
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::Add<float>>(int, float*)",
            "vectorized_elementwise_kernel",
        ),
        (
            "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            "ncclDevKernel_AllReduce_Sum_f16_RING_LL",
        ),
        ("void (anonymous namespace)::softmax<float>(float*)", "softmax"),
        ("ampere_sgemm_128x64_tn", "ampere_sgemm_128x64_tn"),
        ("_ZN5aiter12quant_kernelIDF16bLi64EEEvPT0_", "quant_kernel"),
        ("", ""),
    ],
)
def test_base_names(whole: str, short: str) -> None:
    assert base_name(whole) == short
