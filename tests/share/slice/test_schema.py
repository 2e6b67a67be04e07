"""The new file is an export like the one that it was cut out of: tables, columns, types, names, versions."""

from __future__ import annotations

import hashlib
import resource
import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import pytest

from nsysdiag import analyze, open_trace
from nsysdiag.config.settings import Settings
from nsysdiag.events.callchains import file_name
from nsysdiag.events.samples import decoded, named_in
from nsysdiag.messages import InputError, OutputError
from nsysdiag.share.cut import SliceCut, write_cut
from nsysdiag.share.target import Role, short_path
from nsysdiag.trace.tables import TABLES
from tests.builder import TraceBuilder
from tests.levels import some
from tests.schemas import SCHEMAS
from tests.share.slice.cutting import column, cut_file, cut_of, rows, tables, texts
from tests.share.slice.private import private_trace
from tests.simulator.scenarios import SCENARIOS, scenario
from tests.trace.files import execute

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MS = 1_000_000
DESCRIBED = """SELECT name, iif(name IN ('doubleValue', 'floatValue', 'binaryData'), 'other', type), pk
    FROM pragma_table_info('{}')"""
"""The kit that writes traces knows integers and texts only."""


def small(**options: str) -> TraceBuilder:
    trace = TraceBuilder(**options)  # type: ignore[arg-type]
    trace.kernel(100 * MS, 110 * MS, launch=(99 * MS, 100 * MS)).nvtx("step", 99 * MS, 111 * MS, interned=True)
    return trace.sample(105 * MS).process().gpu().sched(1 * MS, True)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_columns_types_and_version_are_those_of_the_source(schema: str, tmp_path: Path) -> None:
    path = cut_of(small(schema=schema), tmp_path, SliceCut(100 * MS, 200 * MS))
    source = tmp_path / "trace.sqlite"
    assert set(tables(path)) <= set(tables(source))
    for table in tables(path):
        assert rows(path, DESCRIBED.format(table)) == rows(source, DESCRIBED.format(table)), table
    with open_trace(source) as full, open_trace(path) as part:
        assert (part.schema_version, part.nsys_version) == (full.schema_version, full.nsys_version)
    assert [table for table in tables(source) if table.startswith("ENUM_")] == [
        table for table in tables(path) if table.startswith("ENUM_")
    ]


@pytest.mark.slow
def test_a_table_keeps_the_name_that_it_has(tmp_path: Path) -> None:
    source = small().write(tmp_path / "trace.sqlite")
    with closing(sqlite3.connect(source)) as connection, connection:
        connection.execute("ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME TO CUPTI_ACTIVITY_KIND_KERNEL_V3")
    path = cut_file(source, tmp_path / "cut.sqlite", SliceCut())
    assert "CUPTI_ACTIVITY_KIND_KERNEL_V3" in tables(path)
    assert analyze(path).devices == analyze(source).devices


def test_only_strings_in_use(tmp_path: Path) -> None:
    trace = small().kernel(300 * MS, 310 * MS, name="later_kernel", launch=(299 * MS, 300 * MS))
    trace.string("never used")
    assert texts(cut_of(trace, tmp_path, SliceCut(100 * MS, 200 * MS))) == [
        "_Z4gemmPfi", "app", "cudaLaunchKernel_v7000", "gemm", "gemm(float *, int)", "main", "step",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "short"),
    [
        ("/home/ann/run/train.py", "train.py"),
        ("~/run/train.py", "train.py"),
        (r"C:\Users\ann\train.exe", "train.exe"),
        ("/usr/lib/x86_64-linux-gnu/libz.so.1", "/lib/libz.so.1"),
        ("/home/ann/env/lib/python3.11/site-packages/torch/nn/modules/linear.py", "/site-packages/linear.py"),
        ("/home/ann/env/lib/python3.11/json/decoder.py", "/lib/python3.11/decoder.py"),
        ("[kernel.kallsyms]", "[kernel.kallsyms]"),
        ("void a::b<float>(int)", "void a::b<float>(int)"),
        ("step 3/8", "step 3/8"),
    ],
)
def test_paths_keep_their_last_part_and_whose_code_it_is(path: str, short: str) -> None:
    assert short_path(path) == short


def test_the_last_part_of_a_name() -> None:
    assert [file_name(text) for text in ("/usr/bin/python3", r"C:\x\a.exe", "python3")] == [
        "python3",
        "a.exe",
        "python3",
    ]


@pytest.mark.slow
def test_stacks_of_python_keep_their_names(tmp_path: Path) -> None:
    trace = small(schema="3.24.8").python_domain()
    trace.python_stack(105 * MS, [("load", "/home/ann/run/load.py", 7), ("main", "/home/ann/run/train.py", 3)])
    path = cut_of(trace, tmp_path, SliceCut(100 * MS, 200 * MS))
    assert {"load", "load.py", "main", "train.py"} <= set(texts(path))
    assert analyze(path).devices == analyze(tmp_path / "trace.sqlite").devices


def test_names_can_be_changed_on_the_way(tmp_path: Path) -> None:
    """What hides names puts its function here. It is given the whole name and what it is used for."""
    trace = small().nvtx("secret plan", 100 * MS, 101 * MS).diagnostic("lost rows of acme")
    path = cut_of(trace, tmp_path, SliceCut(rename=lambda role, text: f"{role.name} {text}"))
    assert column(path, "NVTX_EVENTS", "text")[-1] == "RANGE secret plan"
    assert column(path, "PROCESSES", "name") == ["PROCESS /usr/bin/python3"]
    assert column(path, "DIAGNOSTIC_EVENT", "text") == ["MESSAGE lost rows of acme"]
    assert texts(path) == [
        *("API cudaLaunchKernel_v7000", "KERNEL gemm(float *, int)", "MODULE /usr/bin/app"),
        *("RANGE step", "SHORT_KERNEL gemm", "SYMBOL main"),
    ]


def test_a_string_of_several_uses_is_several_strings(tmp_path: Path) -> None:
    """`read` is a call of the OS, a thread, a range, an NVTX domain and a function; only the call keeps its name."""
    trace = small().osrt("read", 101 * MS, 102 * MS, chain=("read",)).thread_name("read")
    trace.nvtx("read", 100 * MS, 101 * MS, interned=True, domain=3)
    trace.nvtx("read", 1, None, domain=3, event_type=75, interned=True)
    path = cut_of(trace, tmp_path, SliceCut(rename=lambda role, text: text if role is Role.API else role.name))
    value = "(SELECT value FROM StringIds WHERE id = {})"
    assert rows(path, f"SELECT {value.format('nameId')} FROM OSRT_API") == [("read",)]
    assert rows(path, f"SELECT {value.format('nameId')} FROM ThreadNames") == [("THREAD",)]
    assert rows(path, f"SELECT {value.format('symbol')} FROM OSRT_CALLCHAINS") == [("SYMBOL",)]
    ranges = f"SELECT eventType, {value.format('textId')} FROM NVTX_EVENTS WHERE domainId = 3 ORDER BY 1"
    assert rows(path, ranges) == [(59, "RANGE"), (75, "DOMAIN")]


def test_stacks_of_python_follow_their_names(tmp_path: Path) -> None:
    """And hold nothing but their frames: what pads them is gone."""
    trace = small(schema="3.24.8").python_domain()
    trace.python_stack(105 * MS, [("load", "/home/ann/run/load.py", 7), ("main", "/home/ann/run/train.py", 3)])
    path = cut_of(trace, tmp_path, SliceCut(rename=lambda role, text: f"{role.name} of {len(text)}"))
    assert {"PYTHON_FUNCTION of 4", "PYTHON_FILE of 21", "PYTHON_FILE of 22"} <= set(texts(path))
    ((payload,),) = rows(path, "SELECT binaryData FROM NVTX_EVENTS WHERE binaryData IS NOT NULL")
    known = {number for (number,) in rows(path, "SELECT id FROM StringIds")}
    assert set(named_in(payload)) <= known
    assert (0x3FD).to_bytes(4, "little") not in payload
    with open_trace(path) as opened:
        frames = decoded(payload.hex(), opened.strings)
    assert [(frame.symbol, frame.line) for frame in frames] == [
        ("PYTHON_FUNCTION of 4", 7),
        ("PYTHON_FUNCTION of 4", 3),
    ]


def test_broken_text_survives(tmp_path: Path) -> None:
    source = small().write(tmp_path / "trace.sqlite")
    with closing(sqlite3.connect(source)) as connection, connection:
        connection.execute("UPDATE StringIds SET value = CAST(x'67ff65' AS TEXT) WHERE value = 'gemm'")
    assert r"g\xffe" in texts(cut_file(source, tmp_path / "cut.sqlite", SliceCut()))


@pytest.mark.parametrize("name", ["100%.sqlite", "a?b#c.sqlite", "ä ü.sqlite", "it's.sqlite"])
def test_odd_names_and_the_source_stays_as_it_is(name: str, tmp_path: Path) -> None:
    source = small().write(tmp_path / name)
    before = hashlib.sha256(source.read_bytes()).digest(), source.stat().st_mtime_ns
    cut_file(source, tmp_path / "cut of %41?.sqlite", SliceCut())
    assert (hashlib.sha256(source.read_bytes()).digest(), source.stat().st_mtime_ns) == before
    assert {path.name for path in tmp_path.iterdir()} == {name, "cut of %41?.sqlite"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["starved_training", "graph_replay", "two_gpus", "event_wait"])
def test_the_whole_of_a_trace_says_the_same(name: str, tmp_path: Path) -> None:
    name = name if name in SCENARIOS else "starved_data_parallel"
    source = scenario(name).write(tmp_path / "trace.sqlite", SCENARIOS[name].capture)
    path = cut_file(source, tmp_path / "cut.sqlite", SliceCut())
    assert analyze(path, Settings(timeline=False)).devices == analyze(source, Settings(timeline=False)).devices


def test_a_damaged_trace_is_an_input_error(tmp_path: Path) -> None:
    source = small().write(tmp_path / "trace.sqlite")
    with open_trace(source) as trace:
        data = bytearray(source.read_bytes())
        data[4096:] = b"\xff" * (len(data) - 4096)
        source.write_bytes(data)
        with pytest.raises(InputError, match="may be corrupt"):
            write_cut(trace, tmp_path / "cut.sqlite", SliceCut())


def test_a_folder_that_does_not_exist_is_an_output_error(tmp_path: Path) -> None:
    with (
        open_trace(small().write(tmp_path / "trace.sqlite")) as trace,
        pytest.raises(OutputError, match="cannot write"),
    ):
        write_cut(trace, tmp_path / "none" / "cut.sqlite", SliceCut())


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file may become larger."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_no_room_is_an_output_error(tmp_path: Path) -> None:
    """The trace itself is not to blame."""
    with open_trace(small().write(tmp_path / "trace.sqlite")) as trace:
        with room_for(2048), pytest.raises(OutputError, match="cannot write a part of the trace") as caught:
            write_cut(trace, tmp_path / "cut.sqlite", SliceCut())
        assert caught.value.hint == "make room for temporary files"


def renamed(role: Role, text: str) -> str:
    return f"{role.name} {text}"


@pytest.mark.parametrize("name", ["text", "textId"])
def test_names_of_ranges_in_either_column_alone(name: str, tmp_path: Path) -> None:
    """As of exports that know no other."""
    trace = small().nvtx("lane", 0, None, domain=3, event_type=75, interned=name == "textId")
    trace.nvtx("load", 100 * MS, 101 * MS, domain=3, interned=name == "textId")
    source = trace.write(tmp_path / "trace.sqlite")
    execute(source, f"ALTER TABLE NVTX_EVENTS DROP COLUMN {'textId' if name == 'text' else 'text'}")
    path = cut_file(source, tmp_path / "cut.sqlite", SliceCut(100 * MS, 200 * MS, rename=renamed))
    found = "text" if name == "text" else "(SELECT value FROM StringIds WHERE id = textId)"
    assert rows(path, f"SELECT eventType, {found} FROM NVTX_EVENTS WHERE domainId = 3 ORDER BY 1") == [
        (59, "RANGE load"),
        (75, "DOMAIN lane"),
    ]


def test_operations_without_ids_bring_no_launches(tmp_path: Path) -> None:
    """A kernel without one does not bring its launch at 20 ms; a copy brings its own all the same."""
    trace = small().api("cuInit", 1 * MS, 2 * MS).kernel(150 * MS, 160 * MS, launch=(20 * MS, 21 * MS))
    trace.memcpy(170 * MS, 171 * MS, launch=(30 * MS, 31 * MS)).api("cudaGraphLaunch", 120 * MS, 121 * MS)
    source = trace.write(tmp_path / "trace.sqlite")
    whole = cut_file(source, tmp_path / "cut.sqlite", SliceCut(100 * MS, 200 * MS))
    calls = "CUPTI_ACTIVITY_KIND_RUNTIME"
    assert column(whole, calls, "start") == [1 * MS, 20 * MS, 30 * MS, 99 * MS, 120 * MS]
    execute(source, "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN correlationId")
    path = cut_file(source, tmp_path / "cut.sqlite", SliceCut(100 * MS, 200 * MS))
    assert column(path, "CUPTI_ACTIVITY_KIND_KERNEL", "start") == [100 * MS, 150 * MS]
    assert column(path, calls, "start") == [1 * MS, 30 * MS, 99 * MS, 120 * MS]


def test_names_are_changed_where_there_are_no_strings(tmp_path: Path) -> None:
    source = execute(small().write(tmp_path / "trace.sqlite"), "DROP TABLE StringIds")
    path = cut_file(source, tmp_path / "cut.sqlite", SliceCut(rename=renamed))
    assert "StringIds" not in tables(path)
    assert column(path, "PROCESSES", "name") == ["PROCESS /usr/bin/python3"]
    assert column(path, "CUPTI_ACTIVITY_KIND_KERNEL", "start") == [100 * MS]


def test_meanings_of_numbers_that_are_texts(tmp_path: Path) -> None:
    """What is no number means nothing, and may be there twice: such a table has no key any more."""
    source = small().write(tmp_path / "trace.sqlite")
    execute(
        source,
        "CREATE TABLE ENUM_ODD (id TEXT PRIMARY KEY, name TEXT, label TEXT)",
        "INSERT INTO ENUM_ODD VALUES ('7', 'seven', 'Seven'), ('x', 'ex', 'Ex'), ('y', 'why', 'Why')",
    )
    path = cut_file(source, tmp_path / "cut.sqlite", SliceCut())
    assert rows(path, "SELECT id, name, label FROM ENUM_ODD ORDER BY name") == [
        (None, "ex", "Ex"),
        (7, "seven", "Seven"),
        (None, "why", "Why"),
    ]
    assert rows(path, "SELECT name FROM pragma_table_info('ENUM_ODD') WHERE pk") == []


@pytest.mark.thorough
def test_any_table_and_any_column_may_be_missing(tmp_path: Path) -> None:
    source = private_trace(tmp_path / "trace.sqlite")
    execute(source, "DROP VIEW kernels")
    missing = [(table, None) for table in tables(source)]
    missing += [(table, name) for table in tables(source) for (name, _, _) in rows(source, DESCRIBED.format(table))]
    for table, name in some(missing, 6):
        if table not in TABLES:
            continue
        copy = tmp_path / "copy.sqlite"
        copy.write_bytes(source.read_bytes())
        try:
            execute(copy, f'ALTER TABLE {table} DROP COLUMN "{name}"' if name else f"DROP TABLE {table}")
        except sqlite3.OperationalError:
            continue  # a key cannot go
        for cut in (SliceCut(), SliceCut(50 * MS, 80 * MS), SliceCut(50 * MS, 80 * MS, lean=True)):
            path = cut_file(copy, tmp_path / "cut.sqlite", cut)
            assert set(tables(path)) <= set(tables(copy))
            assert name not in [column for column, _, _ in rows(path, DESCRIBED.format(table))]
