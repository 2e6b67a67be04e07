"""What each text of a report holds: a word of ours, a name of some kind, or a sentence that may hold names.

Every field with text is here, by record and field; one that is missing would leak names, so there is no default.
"""

from __future__ import annotations

from enum import StrEnum


class Text(StrEnum):
    """What a text is, and so what becomes of it. A dictionary's entry is about its keys."""

    OWN = "our own words and numbers: stays"
    API = "a call of CUDA, the OS or MPI: stays if it is a public one"
    KERNEL = "a kernel, or the class of another operation, which stays"
    RANGE = "an NVTX range"
    SYMBOL = "a function of the program"
    MODULE = "a library, program or source file"
    THREAD = "a thread"
    PROCESS = "a process"
    FILE = "a file"
    RANK = "a rank: a file's stem, or the key of a device, which stays"
    CALL = "an API or OS call or a function of the program"
    SENTENCE = "words of ours around names"
    LABELS = "sentences by the cause that they are about"
    WARNING = "what nsys reported: its own words go"
    TABLE = "a table of the export: stays if it is declared"
    GPU = "the model of a GPU: stays if it is one"
    VERSION = "a version of nsys or of the export"
    CURRENCY = "a currency: stays if it is a code or a sign"
    HASH = "a hash that identifies the file"
    ID = "an id made of a hash of names"
    ROW = "what a row of the trace is about, by its table"
    ITERATION = "an NVTX range or an operation, by the source"
    SETTINGS = "settings by name"
    PACKED = "the packed names of a timeline"


_FIELDS = {
    Text.OWN: """
        Report.schema_version Report.recapture Report.timeline Tool.name Tool.version
        Capability.id Capability.recapture DeviceReport.key
        DeviceReport.ledger DeviceReport.root_ledger DeviceReport.sync_drained Verdict.id
        Slice.cause Operation.category Root.cause CallSite.source GapsPacked.starts
        GapsPacked.lengths GapsPacked.causes GapsPacked.cause_ids GapsPacked.encoding SignatureRow.cause
        CodeShare.kind IterationReport.source IterationsPacked.lengths IterationsPacked.work
        IterationsPacked.ledger IterationsPacked.root_ledger IterationsPacked.ops IterationsPacked.kernels
        IterationsPacked.signatures IterationsPacked.encoding
        Iteration.ledger SlowIteration.more ApiRow.cause RunAhead.lowest
        RunAhead.mean_thousandths RunAhead.highest RunAhead.encoding Collapses.cause Bubbles.causes CopyRow.operation
        CopyRow.src CopyRow.dst CopyRate.direction PinningClass.direction ExposedCopies.operation
        ExposedCopies.host_memory ExposedCopies.call CollectiveKind.kind Utilization.sm_source SmEstimate.missing
        SmEstimate.source UtilizationAlert.id UtilizationAlert.source
        UtilizationAlert.numbers UtilizationAlert.thresholds KernelShape.limit Trouble.id Workload.kind
        TroubleKind.id TroubleKind.title GpuMetrics.encoding GpuMetric.id GpuMetric.title
        GpuMetric.unit GpuMetric.names GpuMetric.series Clocks.source RangeMetrics.means KernelMetrics.means
        IterationMetrics.means UnifiedMemory.gpu_fault_access MigrationRow.direction MigrationRow.cause
        DeviceMemory.lowest DeviceMemory.highest DeviceMemory.encoding MemoryGrowth.shape Finding.cause Finding.device
        Finding.severity CauseInfo.id CauseInfo.title CauseInfo.meaning CauseInfo.color TimelineLevels.cause_ids
        TimelineLevels.encoding TimelineLevels.lane_encoding TimelineThread.lanes_of
        TimelineLane.kind TimelineLane.label TimelineLane.levels
        TimelineLane.starts TimelineLane.lengths TimelineLane.names TimelineLane.kinds TimelineLevel.compute
        TimelineLevel.communication TimelineLevel.copies TimelineLevel.idle TimelineLevel.cause RankComparison.basis
        RankComparison.imbalance RankComparison.clock RankRow.device CollectiveGroup.kind
        CollectiveGroup.communicator Straggler.more Straggler.meanwhile RankWait.causes Untold.what Untold.told_by
        TotalCost.devices HostThread.launches Beginning.metric SyncLatency.by
        RanksReport.schema_version RanksReport.kind EvidenceRow.table
    """,
    Text.API: "Gap.drained_by ApiRow.name Stall.what",
    Text.KERNEL: """
        Operation.name SignatureRow.previous_op SignatureRow.next_op GraphRow.name KernelRow.name KernelRow.short_name
        KernelShape.name KernelShape.short_name KernelMetrics.name KernelMetrics.short_name
    """,
    Text.RANGE: "Gap.nvtx Gap.nvtx_elsewhere SignatureRow.nvtx Bubble.nvtx RangeMetrics.name Finding.nvtx",
    Text.SYMBOL: "CodeFrame.symbol CodeShare.symbol",
    Text.MODULE: "CodeFrame.module",
    Text.THREAD: "Thread.name HostThread.name CpuHolder.thread TimelineThread.name",
    Text.PROCESS: "HostThread.process CpuHolder.process CpuLimit.process",
    Text.FILE: "TraceInfo.file RankTrace.file RankRow.file",
    Text.RANK: """
        RankRow.rank RankComparison.slowest RankComparison.fastest CollectiveGroup.ranks Straggler.rank RankWait.rank
        RankWait.late_rank
    """,
    Text.CALL: "Collapses.call Finding.call MpiCall.name",
    Text.SENTENCE: """
        Capability.why Verdict.sentence Workload.why Utilization.sentence UtilizationAlert.sentence
        DeviceReport.notes Window.reason Slice.evidence Root.chain Hop.how Hop.did Trouble.sentence TroubleKind.evidence
        TroubleKind.advice Finding.title Finding.evidence Finding.advice Finding.chain RankComparison.sentence
        RankComparison.unmatched HostReport.advice Utilization.notes
    """,
    Text.LABELS: "DeviceReport.labels DeviceReport.root_labels",
    Text.WARNING: "TraceInfo.warnings RankTrace.warnings",
    Text.TABLE: "TraceInfo.tables",
    Text.GPU: "DeviceReport.name RankRow.name Cost.matched",
    Text.VERSION: "TraceInfo.nsys_version TraceInfo.export_schema_version RankTrace.nsys_version",
    Text.CURRENCY: "Cost.currency TotalCost.currency",
    Text.HASH: "TraceInfo.fingerprint TraceInfo.sha256 RankTrace.fingerprint",
    Text.ID: "SignatureRow.id Saving.finding Finding.id Finding.signature",
    Text.ROW: "EvidenceRow.name",
    Text.ITERATION: "IterationReport.name",
    Text.SETTINGS: "Report.settings RanksReport.settings",
    Text.PACKED: "TimelineLevels.names",
}

FIELDS: dict[str, Text] = {field: text for text, fields in _FIELDS.items() for field in fields.split()}
"""What a field holds, by `Record.field`."""
