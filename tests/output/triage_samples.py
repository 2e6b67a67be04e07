"""Kinds of bottleneck for the samples of reports."""

from __future__ import annotations

from nsysdiag.diagnosis.facts import Triage, TriageKind, Workload


def sample_triage(name: str = "") -> Triage:
    """A device that is fed late; `name` goes into every text that may come from a trace."""
    return Triage(
        id="feed",
        sentence=f"Repair the feed path first (measured by its steps). 27.0% of the time (27.0 ms): the host.{name}",
        workload=Workload(kind="steps", why=f"40 steps repeat, of 2.40 ms in the median{name}", judged_ns=100_000_000),
        kinds=[
            TriageKind(
                id="feed",
                title="The feed path: input, host, copies",
                holds=True,
                share=0.27,
                evidence=[f"27.0% of the time (27.0 ms): the host being late.{name}"],
                advice=[f"Host: take synchronizations out of the step.{name}"],
            ),
            TriageKind(
                id="batch",
                title="Batches too small for the chip",
                holds=None,
                share=None,
                evidence=["How much of the chip the kernels fill is unknown."],
            ),
            TriageKind(
                id="kernels",
                title="The kernels themselves",
                holds=False,
                share=0.45,
                evidence=[f"45.0% compute.{name}"],
            ),
        ],
    )
