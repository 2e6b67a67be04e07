"""The result of `nsysdiag ranks` as plain data, saved as JSON and read back unchanged."""

from __future__ import annotations

from nsysdiag.diagnosis.facts import Diagnosis
from nsysdiag.fields import Bytes, FileHash, FileName, Ns, NsysWarning, OwnText, RankName, ValueBySetting, Version
from nsysdiag.findings.facts import Finding
from nsysdiag.phases.facts import PhaseDevice
from nsysdiag.phrases import Phrases
from nsysdiag.ranks.facts import RankComparison
from nsysdiag.record import Record, Result
from nsysdiag.report import CauseInfo, Tool

RANKS_SCHEMA_VERSION = "2"
KIND = "ranks"


class RankTrace(Record, frozen=True):
    """One of the files; `start_utc_ns` is the UTC of its time 0, None if it does not say. `host_unseen`: it shows
    nothing of the host but CUDA calls and ranges."""

    file: FileName
    size_bytes: Bytes
    fingerprint: FileHash
    nsys_version: Version | None
    start_utc_ns: Ns | None
    warnings: list[NsysWarning]
    host_unseen: bool = False


class RankFinding(Finding, frozen=True):
    """A finding of the whole job: its devices are ranks."""

    device: RankName
    devices: list[RankName] = []


class RankAccount(PhaseDevice, frozen=True):
    """What one rank did in the judged time of its trace."""

    key: RankName


class RanksReport(Result, frozen=True):
    """Everything that was found out about the ranks of one run. The diagnosis and the findings are the job's; each
    rank is judged by the phases of its own trace."""

    schema_version: OwnText
    kind: OwnText
    tool: Tool
    traces: list[RankTrace]
    comparison: RankComparison
    causes: list[CauseInfo]
    settings: ValueBySetting
    diagnosis: Diagnosis | None = None
    findings: list[RankFinding] = []
    judged: list[RankAccount] = []
    phrases: Phrases | None = None
