"""A trace: typed columns of an nsys export, read lazily, and what it can and cannot tell."""

from __future__ import annotations

import os
import re
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from msgspec import structs

from nsysdiag import typed
from nsysdiag.arrays.distinct import distinct_values
from nsysdiag.fields import Sentence, TextKind
from nsysdiag.limits import short_name
from nsysdiag.messages import UsageError, printable
from nsysdiag.record import made_of
from nsysdiag.trace.ahead import Parts, ReadAhead, Request
from nsysdiag.trace.capabilities import COLUMNS as DIAGNOSTIC_COLUMNS
from nsysdiag.trace.capabilities import SEVERITIES, Captured, capabilities, capture_warnings, tells_of_dropped
from nsysdiag.trace.catalog import FoundTable, Resolution, is_nsys_table, is_work, resolve, unread_events
from nsysdiag.trace.columns import Columns, IntArray, Pair, Place, Strings, completed, defaults, joined
from nsysdiag.trace.format import OF_ROCM, RANK, RECORDER, refused
from nsysdiag.trace.formats import folder_format, marked
from nsysdiag.trace.parquet.folder import ParquetFolder
from nsysdiag.trace.query import Choice, Chosen, ChosenRows, LongTexts, RowPart, TimeLimit
from nsysdiag.trace.reader import READERS, NotColumnarError, SqliteDatabase
from nsysdiag.trace.source import TraceSource
from nsysdiag.trace.tables import CAPTURE_OPTIONS, SYSTEM, TABLES, TableSpec, payload_spec, table_spec, work_spec

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    import numpy.typing as npt

    from nsysdiag.comparison.facts import Comparison
    from nsysdiag.config.settings import Settings
    from nsysdiag.report import Capability, Report

IDS_PER_QUERY = 20_000
SLICE = "NSYSDIAG_SLICE"
"""A name in the metadata of a slice of a trace, in addition to those of nsys."""
FIRST_ROWS = 1 << 16
"""Room for the rows of a part of the time, to begin with."""
MANY_ROWS, MOST_PARTS = 1 << 18, 8
"""A table with fewer rows is read by one thread, a larger one in an even number of parts of about so many rows."""


def open_trace(
    path: str | os.PathLike[str],
    *,
    reader: str = "adbc",
    full_hash: bool = False,
    export_timeout_s: float = 600,
    nsys: str | None = None,
) -> Trace:
    """Open an exported trace, an SQLite file or a folder of Parquet files (or a report, which is exported first), for
    reading; use it as a context manager.

    `reader` is "adbc" or "sqlite3": same values, different speed. `full_hash` adds the SHA-256 of the file. `nsys` is
    the program that exports a report, by default the one on the PATH. Raises InputError, which describes the file and
    what to do, and UsageError for an unknown reader.
    """
    if reader not in READERS:
        raise UsageError(f"'{reader}' is not a reader", hint=f"use one of: {', '.join(READERS)}")
    where = Path(os.fsdecode(path))
    folder = folder_format(where)
    source = ParquetFolder(where) if folder else TraceSource(where, export_timeout_s=export_timeout_s, nsys=nsys)
    try:
        return Trace(source, reader=reader, full_hash=full_hash)
    except BaseException:
        source.close()
        raise


PAYLOADS = "DYNAMIC_NVTXPAYLOAD_DATATYPE_"
"""How tables with payloads of NVTX ranges begin, which --dynamic-tables of nsys export makes: one for each schema."""
_NAMED = 5
"""So many of the tables that are not read are named; a trace of graphics has about 20."""


class Trace:
    """An open trace.

    Tables are read on demand, and nothing large is kept. Reads may run in several threads at once. Reading adds
    `warnings` about the file; `events_dropped`: nsys reports lost events.
    """

    def __init__(self, source: TraceSource | ParquetFolder, *, reader: str, full_hash: bool) -> None:
        self._source = source
        self.path: Path = source.path
        self.file: str = printable(source.path.name)
        self.size_bytes: int = source.size_bytes
        self._warnings: dict[Sentence, None] = dict.fromkeys(source.warnings)
        self._ahead: ReadAhead | None = None
        self._span: tuple[int, int] | None = None
        self._long = LongTexts()
        self._database = source.database(reader, self.warn, self._long)
        self._columnar = reader == READERS[0] and isinstance(self._database, SqliteDatabase)
        self._exact_rows: dict[str, int] = {}
        schema = self._database.schema()
        self._tables = schema.tables
        self._check_nsys_tables()
        self._row_bounds = self._database.row_bounds(self._tables)
        if schema.left_out:
            self.warn(f"of {len(self._tables) + schema.left_out:,} tables {schema.left_out:,} were not looked at")
        self.other_work: list[TableSpec] = self._look_at_unread(unread_events(self._tables, self._row_bounds))
        """The tables with work of devices that are not declared: `read` knows them by name."""
        self._specs = TABLES | {spec.name: spec for spec in (*self.other_work, CAPTURE_OPTIONS, SYSTEM)}
        self._resolutions = self._resolve()
        strings = self._resolutions["StringIds"].table
        self.strings: Strings = Strings(None if strings is None else partial(self._database.strings, strings))
        self.fingerprint: str = source.fingerprint(schema.sql)
        self.sha256: str | None = source.sha256() if full_hash else None
        # What the export says of itself, in safe text of 64 characters at most.
        told = _pairs(self.read("META_DATA_EXPORT", "name", "value"))
        metadata = {name: printable(value)[:64] or None for name, value in told}
        self._slice, self._format = SLICE in metadata, marked(metadata)
        self._rocm = metadata.get(self._format.mark) == OF_ROCM
        self.recorder: str | None = metadata.get(RECORDER)
        self.rank: tuple[int, int] | None = _rank(metadata.get(RANK))
        """Which rank of a distributed program it is of, and of how many, if the export says it."""
        self.nsys_version: str | None = metadata.get("EXPORT_PRODUCT_VERSION")
        self.schema_version: str | None = metadata.get("EXPORT_SCHEMA_VERSION")
        events = self.read_chosen("DIAGNOSTIC_EVENT", "severity", SEVERITIES, *DIAGNOSTIC_COLUMNS)
        reported = capture_warnings(events)
        self.events_dropped: bool = any(map(tells_of_dropped, filter(None, events.text("text").texts())))
        for warning in reported:
            self.warn(warning)
        self._opening_warnings = len(self._warnings)

    @property
    def cut(self) -> bool:
        """Whether it is a part of a run by its format, as a trace of the PyTorch profiler is."""
        return self._format.amid_run

    @property
    def warnings(self) -> list[str]:
        """Warnings about the file: those of opening it, then those of reading in alphabetical order, as parallel reads
        end in any order."""
        return [typed.plain(warning) for warning in self.typed_warnings]

    @property
    def typed_warnings(self) -> list[Sentence]:
        """The same with what their names are names of."""
        found = list(self._warnings)
        return [
            *found[: self._opening_warnings],
            *sorted(found[self._opening_warnings :], key=typed.plain),
            *self._long.warnings(),
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Check that the file is still the same, and remove private copies of it."""
        if self._ahead is not None:
            self._ahead.close()
        self.check_unchanged()
        self._source.close()

    def check_unchanged(self) -> bool:
        """Whether the file still has the size and the time it was opened with; if not, a warning says so."""
        changed = self._source.changed()
        if changed:
            self.warn("the file was changed while it was read; what was read may not belong together")
        return not changed

    def analyze(self, settings: Settings | None = None) -> Report:
        """The report of this trace, see `nsysdiag.analyze`."""
        return cast("Report", made_of(self.path, "pipeline.loading", "analyze", settings))

    def compare(self, after: Any) -> Comparison:
        """What changed from this trace to another one, see `nsysdiag.compare`."""
        return cast("Comparison", made_of(self.path, "pipeline.changes", "compare", getattr(after, "path", after)))

    def has(self, table: str) -> bool:
        """Whether the table exists, under its own, an older or a suffixed name, and holds at least one
        row."""
        return self._filled(table) is not None

    def _filled(self, table: str) -> FoundTable | None:
        """The table of the file that stands for a declared one, if it has rows."""
        found = self.table(table)
        return found if found is not None and found.name in self._row_bounds else None

    def missing(self, table: str) -> str | None:
        """Why `has` is false for a table; None if it is true."""
        return self._resolution(table).reason or None

    def read(self, table: str, *columns: str) -> Columns:
        """Columns of a table by their canonical names, all rows in the order of the file.

        An absent table is empty, an absent column holds its default. Raises KeyError for undeclared names.
        """
        try:
            ready = self._ahead.take(table, columns) if self._ahead is not None else None
        except NotColumnarError:
            ready = None
        return self._read_all(table, *columns) if ready is None else self._counted(table, ready)

    def only_between(self, low: int, high: int) -> None:
        """From now on read only the events that reach into [low, high) ns; tables without times are read whole."""
        self._span = (low, high)

    @property
    def partial(self) -> bool:
        """True where only a part of the capture is read, or is in the file: a slice that this program made."""
        return self._span is not None or self._slice

    def about_rows(self, table: str) -> int:
        """About how many rows a table has, without counting them."""
        found = self._filled(table)
        return self._capacity(found) if found else 0

    def sampled_times(self, table: str, most: int) -> IntArray:
        """The starts of rows picked evenly from a table of events; none where their place is not known."""
        spec, found, rows = self._spec(table), self._filled(table), self.about_rows(table)
        if found is None or found.rowid is None or spec.times is None:
            return np.empty(0, dtype=np.int64)
        ids = distinct_values(np.linspace(1, rows, min(most, rows)).astype(np.int64)).tolist()
        start = spec.times[0]
        return self._read(spec, found, [start], ChosenRows(ids)).integers(start)

    def read_ahead(self, requests: Sequence[Request]) -> None:
        """Begin to read these tables in the background; `read` of the same columns returns the result, once."""
        if self._ahead is None:
            self._ahead = ReadAhead(self._parts, requests)

    def _parts(self, table: str, *columns: str) -> Parts:
        """What reads a table. One with many rows is read in parts, by rowid, so that both threads are busy to the
        end."""
        spec, found, rows = self._spec(table), self._filled(table), self.about_rows(table)
        if found is None or found.rowid is None or rows < MANY_ROWS or self._span is not None or not self._columnar:
            return Parts.whole(partial(self._read_all, table, *columns))
        count = min(2 * max(round(rows / MANY_ROWS / 2), 1), MOST_PARTS)
        borders = [rows * at // count for at in range(count + 1)]
        sizes = [end - begin for begin, end in pairwise(borders)]
        sides = pairwise([None, *borders[1:-1], None])
        parts = [RowPart(*each, size) for each, size in zip(sides, sizes, strict=True)]
        return Parts([partial(self._read_part, spec, found, columns, part) for part in parts], sizes)

    def _read_all(self, table: str, *columns: str) -> Columns:
        spec, found = self._spec(table), self._filled(table)
        if found is None:
            return self._empty(table, columns)
        return self._counted(table, self._read(spec, found, columns, *self._within(spec, found)))

    def _counted(self, table: str, columns: Columns) -> Columns:
        """The same, of which the number of rows is that of the table if all of it is read."""
        found = self._filled(table)
        if found is not None and not self._within(self._spec(table), found):
            self._exact_rows[found.name] = len(columns)
        return columns

    def _within(self, spec: TableSpec, found: FoundTable) -> list[Choice]:
        """The restriction to a part of the time, if there is one."""
        if self._span is None or spec.times is None:
            return []
        start, end = (found.sources(spec.column(name)) for name in spec.times)
        return [TimeLimit(start[0].name, end[0].name, *self._span)] if start and end else []

    def read_chosen(self, table: str, key: str, ids: npt.ArrayLike, *columns: str) -> Columns:
        """Like `read`, but only the rows whose INTEGER column `key` is one of `ids`.

        Rows come in the order of the file for up to 20,000 ids, else in blocks of so many ids in ascending
        order. Without an index on `key` (callchains and StringIds have one) every block scans the table.
        """
        spec, found = self._spec(table), self._filled(table)
        distinct = distinct_values(np.asarray(ids, np.int64)).tolist()
        keys = found.sources(spec.column(key)) if found else ()
        if found is None or not keys or not distinct:
            return self._empty(table, columns)
        blocks = [distinct[start : start + IDS_PER_QUERY] for start in range(0, len(distinct), IDS_PER_QUERY)]
        return joined([self._read(spec, found, columns, Chosen(keys[0].name, block)) for block in blocks])

    def read_split(
        self, table: str, keys: tuple[str, str], pairs: Sequence[Pair], *columns: str
    ) -> dict[Pair, Columns]:
        """The rows of each of the `pairs` of values of the two INTEGER columns `keys`, read at once, in the order of
        the file.

        Pairs without rows are left out; all are if the file lacks one of the columns. `columns` are numbers. For tables
        of many millions of rows, whose ids need not be kept.
        """
        spec, found = self._spec(table), self._filled(table)
        wanted = [spec.column(name) for name in (*keys, *columns)]
        if found is None or not pairs or not all(map(found.sources, wanted)):
            return {}
        # One list for each column: quicker than pairs, and who reads sorts the rows by pair anyhow.
        sides = zip(wanted, zip(*pairs, strict=True), strict=False)
        chosen = [Chosen(found.sources(each)[0].name, sorted(set(ids))) for each, ids in sides]
        return self._database.read_split(found, wanted, pairs, *chosen, *self._within(spec, found))

    def _read_part(
        self, spec: TableSpec, found: FoundTable, columns: Sequence[str], part: RowPart, place: Place | None
    ) -> Columns:
        """A part of a table of an SQLite file, to its place if it has one."""
        assert isinstance(self._database, SqliteDatabase)
        return self._database.read(found, [spec.column(name) for name in columns], part.rows, part, place=place)

    def _read(self, spec: TableSpec, found: FoundTable, columns: Sequence[str], *chosen: Choice) -> Columns:
        wanted = [spec.column(name) for name in columns]
        limits = [_room(each) for each in chosen]
        return self._database.read(found, wanted, min(limits, default=self._capacity(found)), *chosen)

    def _capacity(self, found: FoundTable) -> int:
        """The expected number of rows: no more than fit into the file."""
        expected = self._exact_rows.get(found.name, self._row_bounds[found.name])
        return min(max(expected, 1), self._source.most_rows)

    @property
    def uri(self) -> str:
        """The URI that opens the database read-only."""
        return self._source.uri

    def table(self, name: str) -> FoundTable | None:
        """The table of the file that stands for a declared one, under whatever name; None if there is none."""
        return self._resolution(name).table

    def ordinary_tables(self) -> list[FoundTable]:
        """Every ordinary table of the file, by name."""
        return [self._tables[name] for name in sorted(self._tables)]

    def capabilities(self) -> list[Capability]:
        """What kinds of evidence the trace holds, why not, and the `nsys profile` option that brings each."""
        return capabilities(self.missing, self._rows_of, self._captured())

    def _captured(self) -> Captured:
        """How the trace was recorded. Its tables hold what is private too, and are in no slice."""
        options, system = (
            _pairs(self._read(spec, table, ("name", "value"))) if (table := self._filled(spec.name)) else []
            for spec in (CAPTURE_OPTIONS, SYSTEM)
        )
        found = Captured.of(options, system)
        windows = found.windows or self.has("TARGET_INFO_WDDM_CONTEXTS")
        return structs.replace(found, windows=windows, format=self._format, rocm=self._rocm)

    def tables(self) -> dict[str, int | str]:
        """The rows of every ordinary table in the file: exact where it was read, else `~` and the largest
        rowid."""
        return {short_name(name): self._rows(self._tables[name]) for name in sorted(self._tables)}

    def _rows_of(self, table: str) -> int | str:
        found = self._filled(table)
        return self._rows(found) if found else 0

    def _rows(self, found: FoundTable) -> int | str:
        if found.name not in self._row_bounds:
            return 0
        if found.rowid is None:
            return self._row_bounds[found.name]
        return self._exact_rows.get(found.name, f"~{self._row_bounds[found.name]}")

    def _check_nsys_tables(self) -> None:
        if not self._tables:
            what = f"{self._source.noun} without any table"
        elif not any(map(is_nsys_table, self._tables)):
            what = f"{self._source.noun} without Nsight Systems tables"
        else:
            return
        raise refused(self.path, f"is {what}")

    def _resolve(self) -> dict[str, Resolution]:
        resolutions = {name: resolve(spec, self._tables, self._row_bounds) for name, spec in self._specs.items()}
        for resolution in resolutions.values():
            if resolution.warning:
                self.warn(resolution.warning)
        return resolutions

    def _look_at_unread(self, found: list[FoundTable]) -> list[TableSpec]:
        """The undeclared tables that hold work of devices, which is read; a warning names them and those that are
        not."""
        work = [table for table in found if is_work(table)]
        other = [table for table in found if not is_work(table)]
        names = [typed.name(TextKind.TABLE, short_name(table.name)) for table in other]
        for table in work:
            unknown = "{} is not a table that nsysdiag knows: its rows are work of a device, and count as busy time"
            self.warn(typed.say(unknown, typed.name(TextKind.TABLE, short_name(table.name))))
        if other:
            named = typed.joined(", ", names[:_NAMED])
            more = f" and {len(other) - _NAMED:,} more" if len(other) > _NAMED else ""
            tables = "1 table of events is" if len(other) == 1 else f"{len(other):,} tables of events are"
            self.warn(typed.say("{} not read: {}{}", tables, named, more))
        return [work_spec(table.name) for table in work]

    def payload_tables(self, fields: Sequence[str]) -> list[TableSpec]:
        """The tables with payloads of NVTX ranges that have rows and any of these fields; `read` knows them by name."""
        for name, table in self._tables.items():
            there = [field for field in fields if table.column(field)]
            if name.startswith(PAYLOADS) and name in self._row_bounds and there and table.column("eventId"):
                self._specs[name] = payload_spec(name, there)
                self._resolutions[name] = resolve(self._specs[name], self._tables, self._row_bounds)
        return [spec for name, spec in self._specs.items() if name.startswith(PAYLOADS)]

    def _spec(self, name: str) -> TableSpec:
        return self._specs.get(name) or table_spec(name)

    def _resolution(self, name: str) -> Resolution:
        return self._resolutions[self._spec(name).name]

    def text(self, cell: bytes) -> str:
        """A text cell of the file as far as texts are read (limits.TEXT_BYTES)."""
        return self._long.decode(cell)

    def warn(self, text: Sentence) -> None:
        """Add a warning, once."""
        self._warnings.setdefault(text)

    def _empty(self, table: str, columns: Sequence[str]) -> Columns:
        found, wanted = self.table(table), [self._spec(table).column(name) for name in columns]
        return completed(wanted, {each.name: defaults(each, 0) for each in wanted if found and found.sources(each)}, 0)


def _room(choice: Choice) -> int:
    """For how many rows there is room to begin with."""
    return len(choice.ids) if isinstance(choice, Chosen | ChosenRows) else FIRST_ROWS


_RANK = re.compile(r"([0-9]{1,8})/([0-9]{1,8})")


def _rank(told: str | None) -> tuple[int, int] | None:
    """A rank and how many there are, as the export says it; None for anything else."""
    found = _RANK.fullmatch(told or "")
    return None if found is None else (int(found[1]), int(found[2]))


def _pairs(read: Columns) -> list[tuple[str, str]]:
    """The names and values of a table of settings, empty for NULL."""
    return [(name or "", value or "") for name, value in read.tuples("name", "value")]
