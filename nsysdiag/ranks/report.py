"""The result of `nsysdiag ranks` as plain data, saved as JSON and read back unchanged."""

from __future__ import annotations

from nsysdiag.fields import Bytes, FileHash, FileName, Ns, NsysWarning, OwnText, ValueBySetting, Version
from nsysdiag.phrases import Phrases
from nsysdiag.ranks.facts import RankComparison
from nsysdiag.record import Record
from nsysdiag.report import CauseInfo, Tool

RANKS_SCHEMA_VERSION = "2"
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
    settings: ValueBySetting
    phrases: Phrases | None = None
