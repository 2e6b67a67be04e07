"""Uncovered: nothing in the trace tells what the thread did."""

from __future__ import annotations

from nsysdiag.causes.advice import Advice
from nsysdiag.causes.cause import Cause, Lookalike
from nsysdiag.causes.variant import Variant

CAUSE = Cause(
    id="uncovered",
    title="Unexplained",
    meaning="Nothing in the trace tells what the launching thread did here.",
    side="host",
    tables=(),
    advice=Advice(("Capture again with --trace=osrt, --cpuctxsw and --sample: they tell what the thread did.",)),
    color="#c1acb2",
    picture="""
device  [==A==)......................[==next==)
thread             ?  ?  ?  ?  [launch]
""",
    family="unknown",
    sources=("nsight_cli",),
    confirm=(
        "The launching thread has no row of any kind there. `nsysdiag info TRACE` says which kinds of evidence the capture lacks, and the report ends with the command that brings them.",
    ),
    confused_with=(
        Lookalike(
            "host_compute", "What it is most often. With --cpuctxsw and --sample it becomes host code or a wait."
        ),
        Lookalike("blocked", "With scheduling alone, a wait becomes this."),
    ),
    variants=(Variant("other", "", "capture again with --trace=osrt --cpuctxsw --sample"),),
    unresolved=True,
    opening="nothing is known of what {thread} did",
    resolved_by=("os-runtime", "scheduling", "cpu-samples"),
)
