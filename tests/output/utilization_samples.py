"""Utilization made by hand for the output tests."""

from __future__ import annotations

import msgspec

from nsysdiag.utilization.facts import KernelShape, SmEstimate, Utilization, UtilizationSeries

MS = 1_000_000
BY_TIME = [0.9, 0.1, 0.6, 0.4, 0.7, 0.3, 0.55, 0.55, 0.8, 0.6]
BY_PERIOD = [1.0] * 8 + [0.0, None] + [1.0] * 10


def series(values: list[float | None], period_ns: int) -> UtilizationSeries:
    """Equal periods from where the window of the sample device begins."""
    held = [value for value in values if value is not None]
    return UtilizationSeries(
        period_ns=period_ns,
        periods=len(held),
        lowest=min(held),
        highest=max(held),
        start_ns=90 * MS,
        step_ns=period_ns,
        values=values,
    )


def kernel_shape(name: str, total_ns: int = 30 * MS) -> KernelShape:
    return KernelShape(
        name=name,
        short_name=name,
        count=400,
        total_ns=total_ns,
        shapes=2,
        blocks=96,
        threads=256,
        registers=64,
        shared_bytes=16_384,
        blocks_per_sm=4,
        waves=0.181818,
        sm_share=0.727273,
        resident_share=0.181818,
        limit="grid too small",
    )


def utilization_of(**changes: object) -> Utilization:
    """A device of 100 ms with kernels for 55 ms, on a fifth of its SMs."""
    made = Utilization(
        util_time_share=0.55,
        busy_share=0.6,
        compute_share=0.45,
        exposed_comm_share=0.1,
        exposed_copy_share=0.05,
        idle_share=0.4,
        util_period_share=0.947368,
        by_time=series([*BY_TIME], 10 * MS),
        by_period=series([*BY_PERIOD], 5 * MS),
        sm_active_share=0.11,
        sm_source="estimate",
        estimate=SmEstimate(
            sm_active_share=0.11,
            resident_share=0.044,
            sm_active_running=0.2,
            resident_running=0.08,
            sm_active_at_most=0.132,
            covered_share=0.96,
            missing="some of the kernels' time has no launch shape",
        ),
        efficiency=0.2,
        sentence="In this window a dashboard would show 55.0%; the GPU is idle 40.0% of the time.",
        kernels=[kernel_shape("ampere_sgemm_128x64_tn"), kernel_shape("vectorized_elementwise_kernel", 9 * MS)],
        notes=["the window holds 100 ms, less than one sample of a counter (167 ms)"],
    )
    return msgspec.structs.replace(made, **changes)


def measured_utilization() -> Utilization:
    """SM activity from GPU metrics on a chip that the trace says nothing else about."""
    nothing = SmEstimate(
        sm_active_share=None,
        resident_share=None,
        sm_active_running=None,
        resident_running=None,
        sm_active_at_most=None,
        covered_share=0.0,
        missing="nothing is known about the chip",
    )
    bare = msgspec.structs.replace(
        kernel_shape("gemm"), blocks_per_sm=None, waves=None, sm_share=None, resident_share=None, limit=None
    )
    return utilization_of(
        util_time_share=1.0,
        busy_share=1.0,
        compute_share=1.0,
        exposed_comm_share=0.0,
        exposed_copy_share=0.0,
        idle_share=0.0,
        util_period_share=1.0,
        by_time=series([1.0] * 10, 10 * MS),
        by_period=series([1.0] * 20, 5 * MS),
        sm_active_share=0.8,
        sm_source="gpu-metrics",
        estimate=nothing,
        efficiency=0.8,
        sentence="In this window a dashboard would show 100.0%, with work on 80.0% of the SMs on average.",
        kernels=[bare],
        notes=[],
    )


def hostile_utilization(names: list[str]) -> Utilization:
    bad = "".join(names)
    base = utilization_of()
    return msgspec.structs.replace(
        base,
        sm_source="estimate",
        estimate=msgspec.structs.replace(base.estimate, missing=bad, source=bad),
        sentence=bad,
        kernels=[msgspec.structs.replace(kernel_shape(name), limit=name) for name in names],
        notes=names,
    )


def long_utilization() -> Utilization:
    """As many values and kernels as a report can hold."""
    return utilization_of(
        by_time=series([0.5 + 0.001 * (at % 100) for at in range(2000)], MS),
        by_period=series([float(at % 7 > 0) for at in range(2000)], MS),
        kernels=[kernel_shape(f"kernel_{at}_{'y' * 300}", (300 - at) * MS) for at in range(200)],
    )
