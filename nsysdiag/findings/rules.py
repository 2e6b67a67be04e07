"""The rules of findings that are not causes of idle time, and how much a finding matters."""

from __future__ import annotations

from msgspec import Struct

from nsysdiag.bottlenecks import BOTTLENECKS, BottleneckId
from nsysdiag.causes import CAUSES, color_of
from nsysdiag.causes.cause import Advice, RuleWords, SourceDocument, sources, words_of
from nsysdiag.causes.evidence import Threshold, setting
from nsysdiag.config.settings import FindingThresholds
from nsysdiag.findings.facts import Finding
from nsysdiag.report import CauseInfo


class FindingRule(Struct, frozen=True):
    """A finding that is not a cause: its name in the report, its text, and its advice.

    `bottleneck` is what its time is charged to; `fix` is the short form of the plain `advice` that ends a causal chain;
    `thresholds` are the settings that it depends on (fields of FindingThresholds)."""

    id: str
    bottleneck: BottleneckId
    title: str
    meaning: str
    tables: tuple[str, ...]
    fix: str
    thresholds: tuple[str, ...] = ("smallest",)

    @property
    def words(self) -> RuleWords:
        """What else is said of it."""
        return words_of(self.id)

    @property
    def advice(self) -> Advice:
        """What to do about it."""
        return self.words.advice_for()

    def finding(self, device: str, share: float, limits: FindingThresholds) -> Finding:
        """A finding that takes a `share` of the judged time of a device, without evidence, advice and lost time."""
        return Finding(
            id=f"f-{self.id}",
            cause=self.id,
            device=device,
            severity=severity(share, limits),
            title=self.title,
            lost_ns=0,
            lost_share=0.0,
            ceiling_ns=0,
            confidence=1.0,
            nvtx=[],
            evidence=[],
            advice=[],
            devices=[device],
            bottleneck=self.bottleneck,
            share=round(share, 6),
        )


EXPOSED_COPY = FindingRule(
    id="exposed_copy",
    bottleneck="copies",
    title="Exposed copies",
    meaning="The device copied or set memory while no kernel ran.",
    tables=("CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET"),
    fix="overlap copies with compute, on a separate stream",
)
EXPOSED_COMM = FindingRule(
    id="exposed_comm",
    bottleneck="communication",
    title="Exposed communication",
    meaning="Communication kernels ran while no other kernel did.",
    tables=("CUPTI_ACTIVITY_KIND_KERNEL", "NVTX_EVENTS"),
    fix="overlap it with compute",
)
BEFORE_WORK = FindingRule(
    id="before_work",
    bottleneck="host",
    title="Time before the first GPU work",
    meaning="What the program did from its first CUDA call to the first work of the device: a part of start-up.",
    tables=("CUPTI_ACTIVITY_KIND_RUNTIME", "OSRT_API", "SCHED_EVENTS"),
    fix="shorten the start-up, if it matters",
)
PAGING = FindingRule(
    id="paging",
    bottleneck="memory",
    title="Kernels wait for pages of unified memory",
    meaning="Pages of unified memory migrated on demand, while kernels ran or the device was idle: kernels wait for them.",
    tables=("CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_KERNEL"),
    fix="prefetch the pages after the host's last access",
)
LATE_RANK = FindingRule(
    id="late_rank",
    bottleneck="communication",
    title="Others wait for a late GPU",
    meaning="The device waited inside a collective or an MPI call for another one that came late.",
    tables=("CUPTI_ACTIVITY_KIND_KERNEL", "MPI_COLLECTIVES_EVENTS"),
    fix="fix what makes it late",
)
OTHER_GPU = FindingRule(
    id="other_gpu",
    bottleneck="kernels",
    title="Waiting for another GPU",
    meaning="The device was idle until another device finished its work: the host or an event waited for a stream of that device. The time is charged to what that device did meanwhile.",
    tables=("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "CUPTI_ACTIVITY_KIND_CUDA_EVENT", "CUPTI_ACTIVITY_KIND_KERNEL"),
    fix="run ahead, order the GPUs by events, divide the work evenly",
)


def wait_id(bottleneck: str, other: str) -> str:
    """The id of the finding on waits for another device that is busy with a bottleneck."""
    return f"f-{OTHER_GPU.id}-{bottleneck}-{other}"


KERNELS = FindingRule(
    id="kernels",
    bottleneck="kernels",
    title="Kernel time",
    meaning="The device computed, and as far as the trace shows, kernels filled the chip.",
    tables=("CUPTI_ACTIVITY_KIND_KERNEL",),
    fix="profile the kernel with Nsight Compute",
)
UNFUSED = FindingRule(
    id="unfused",
    bottleneck="kernels",
    title="Unfused elementwise, cast and norm kernels",
    meaning="By their names, these kernels each run one elementwise operator, cast, concatenation, normalization or reduction of a framework. Their time counts as kernel time.",
    tables=("CUPTI_ACTIVITY_KIND_KERNEL",),
    fix="fuse them with their neighbours",
)
SINGLE_PRECISION = FindingRule(
    id="single_precision",
    bottleneck="kernels",
    title="FP32 matrix products without tensor cores",
    meaning="By their names, these kernels multiply matrices, or convolve, in single precision without tensor cores, on a GPU that has them. Their time counts as kernel time. The bound is the ratio of the GPU's published peak rates.",
    tables=("CUPTI_ACTIVITY_KIND_KERNEL", "TARGET_INFO_GPU"),
    fix="allow TF32, or use types of 16 bits",
)
PARALLELISM = FindingRule(
    id="parallelism",
    bottleneck="parallelism",
    title="Kernels that leave most of the chip empty",
    meaning="All kernels running at the time together had fewer blocks than half of the SMs, or counters showed few active SMs.",
    tables=("CUPTI_ACTIVITY_KIND_KERNEL",),
    fix="launch more blocks, or run kernels concurrently",
)
SLOW_ITERATIONS = FindingRule(
    id="slow_iterations",
    bottleneck="host",
    title="Some iterations take far longer",
    meaning="Steady iterations longer than the median by three times the usual deviation and by 5%. What they compute more may be work: it is no saving. The time itself is charged to other findings: nothing is counted twice.",
    tables=("CUPTI_ACTIVITY_KIND_KERNEL", "NVTX_EVENTS"),
    fix="look at what takes longer in these iterations",
)
EMPTY_ITERATIONS = FindingRule(
    id="empty_iterations",
    bottleneck="host",
    title="Iterations without work for the device",
    meaning="A range of the program repeats, and some of its instances launch nothing on the device. The time itself is charged to other findings: nothing is counted twice.",
    tables=("NVTX_EVENTS", "CUPTI_ACTIVITY_KIND_RUNTIME"),
    thresholds=("empty",),
    fix="give the device work in them, or share it with another job",
)
FINDING_RULES = {
    rule.id: rule
    for rule in (
        EXPOSED_COPY,
        EXPOSED_COMM,
        PAGING,
        BEFORE_WORK,
        LATE_RANK,
        OTHER_GPU,
        KERNELS,
        UNFUSED,
        SINGLE_PRECISION,
        PARALLELISM,
        SLOW_ITERATIONS,
        EMPTY_ITERATIONS,
    )
}


def severity(share: float, thresholds: FindingThresholds | None = None, *, unresolved: bool = False) -> str:
    """high, medium, low or info, by the share of the window; unknown time is info."""
    limits = thresholds or FindingThresholds()
    if unresolved:
        return "info"
    words = ((limits.high, "high"), (limits.medium, "medium"), (limits.low, "low"))
    return next((word for least, word in words if share >= least), "info")


def cause_infos() -> list[CauseInfo]:
    """The registry of causes as data, and what else findings are about."""
    causes = [
        CauseInfo(
            id=each.id,
            title=each.title,
            meaning=each.meaning,
            color=color_of(each.id),
            unresolved=each.unresolved,
            bottleneck=each.bottleneck,
        )
        for each in CAUSES.values()
    ]
    return causes + [
        CauseInfo(
            id=rule.id,
            title=rule.title,
            meaning=rule.meaning,
            color=BOTTLENECKS[rule.bottleneck].color,
            bottleneck=rule.bottleneck,
        )
        for rule in FINDING_RULES.values()
    ]


def thresholds_of(rule: str) -> tuple[Threshold, ...]:
    """The thresholds of a cause or a rule of findings: its own, then those that make it a finding."""
    if rule in FINDING_RULES:
        return tuple(setting(name) for name in FINDING_RULES[rule].thresholds)
    common = () if CAUSES[rule].unresolved else ("smallest", "places")
    return (*CAUSES[rule].thresholds, *(setting(name) for name in common or ("smallest",)))


def words_about(rule: str) -> RuleWords:
    """What is said of a cause or of a rule of findings."""
    return FINDING_RULES[rule].words if rule in FINDING_RULES else CAUSES[rule].words


def sources_of(rule: str) -> tuple[SourceDocument, ...]:
    """The documents that a cause or a rule of findings rests on, then those of its advice for frameworks."""
    words, known = words_about(rule), sources()
    of_advice = [each.source for advice in words.every_advice() for _, each in advice.others()]
    return tuple(known[name] for name in dict.fromkeys((*words.sources, *of_advice)))
