"""Uncovered: nothing in the trace tells what the thread did."""

from __future__ import annotations

from nsysdiag.causes.cause import Advice, Cause, Lookalike, Variant

CAUSE = Cause(
    id="uncovered",
    title="Unexplained idle time",
    meaning="The trace does not show what the launching thread did here.",
    side="host",
    tables=(),
    advice=Advice(("Capture again with --trace=osrt, --cpuctxsw and --sample: they show what the thread did.",)),
    picture="""
device  [==A==)......................[==next==)
thread             ?  ?  ?  ?  [launch]
""",
    bottleneck="unknown",
    shade=3,
    sources=("nsight_cli",),
    confirm=(
        "The launching thread has no row of any kind there. `nsysdiag info TRACE` says which kinds of evidence the "
        "capture lacks, and the report ends with the command that captures them.",
    ),
    confused_with=(
        Lookalike(
            "host_compute", "The most frequent case. With --cpuctxsw and --sample it becomes host code or a wait."
        ),
        Lookalike("blocked", "With scheduling events alone, a wait becomes this."),
    ),
    variants=(Variant("other", "", "capture again with --trace=osrt --cpuctxsw --sample"),),
    unresolved=True,
    opening="it is unknown what {thread} did",
    resolved_by=("os-runtime", "scheduling", "cpu-samples"),
)
