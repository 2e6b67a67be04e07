"""The result of `nsysdiag ranks` as plain data, saved as JSON and read back unchanged."""

from __future__ import annotations

from nsysdiag.fields import Bytes, FileHash, FileName, Ns, NsysWarning, OwnText, TextBySetting, Version
from nsysdiag.phrases import Phrases
from nsysdiag.ranks.facts import RankComparison
from nsysdiag.record import Record, schema_of, to_saved
from nsysdiag.report import CauseInfo, Tool
from nsysdiag.saved import from_saved

RANKS_SCHEMA_VERSION = "1"
KIND = "ranks"


class RankTrace(Record, frozen=True):
    """One of the files; `start_utc_ns` is the UTC of its time 0, None where it does not say."""

    file: FileName
    size_bytes: Bytes
    fingerprint: FileHash
    nsys_version: Version | None
    start_utc_ns: Ns | None
    warnings: list[NsysWarning]


class RanksReport(Record, frozen=True):
    """Everything that was found out about the ranks of one run."""

    schema_version: OwnText
    kind: OwnText
    tool: Tool
    traces: list[RankTrace]
    comparison: RankComparison
    causes: list[CauseInfo]
    settings: TextBySetting
    phrases: Phrases | None = None


def ranks_to_json(report: RanksReport) -> bytes:
    """The report as UTF-8 JSON, keys sorted, indented by two, one final newline: same report, same bytes."""
    return to_saved(report)


def ranks_from_json(data: bytes) -> RanksReport:
    """Read a saved report back. Raises one of UNREADABLE where it is none."""
    return from_saved(data, RanksReport)


def ranks_schema() -> bytes:
    """The JSON Schema of a saved report of ranks; the copy in nsysdiag/data is made from it."""
    return schema_of(RanksReport)
