"""Invariants of what is said: the headline is about the bottleneck, and no sentence contradicts the figures."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.diagnosis.invariants.registry import invariant
from tests.diagnosis.report_json import (
    Json,
    account_of,
    devices_of,
    diagnosis_of,
    judged_phases,
    saved_share,
    sentences,
    shares_of,
    working,
)

MENTIONS = {
    "kernels": r"kernel|comput|busy",
    "parallelism": r"parallel|kernel|block|SMs?\b|empty|fill",
    "communication": r"communicat|collective|NCCL|MPI|all-?reduce|exchange|rank|peer",
    "copies": r"cop(y|ies)|transfer|upload|download|migrat",
    "input": r"input|data|read|load|file|network",
    "host": r"host|CPU|code|lock|interpreter|sleep|writ",
    "sync": r"synchroni|wait|read-?back",
    "launch": r"launch",
    "memory": r"memory|alloc|pag(e|ing)|migrat",
    "startup": r"start|initiali|load|compil|context|warm|(build|updat)ing.* graph",
    "other_process": r"process|program",
    "profiler": r"profil",
    "unknown": r"unknown|(no|without) evidence|not (in|record|know|captur|trac|expla)|cannot|unexplain|no GPU|untraced"
    r"|host code outside CUDA calls"
    "|queued work",
}
PYTORCH = re.compile(
    r"PyTorch|\btorch\.|DataLoader|num_workers|pin_memory|persistent_workers|\.item\(\)|aten::|autocast|non_blocking"
    r"|zero_grad|set_to_none|cudnn\.benchmark|FSDP|autograd"
)
SMALLER_GPU = re.compile(r"smaller GPU|smaller instance|GPU (is )?too large|\bMIG\b", re.IGNORECASE)
PINNING = re.compile(r"\bpin(ned|ning)?\b", re.IGNORECASE)
BUSY = 0.9
NEARLY = 0.95
"""Of a bottleneck's time: a finding on so much of it says what most of it is."""
ROUNDED = 1e-5
"""Shares have six digits."""
TELLING_NOTHING = re.compile(r"cannot tell", re.IGNORECASE)
FIX_FIRST = re.compile(r"(fix|fix) .* first", re.IGNORECASE)


@invariant
def the_headline_is_about_the_bottleneck(report: Json) -> Iterator[str]:
    """The headline mentions the bottleneck, and the second one."""
    diagnosis = diagnosis_of(report)
    named = [diagnosis["bottleneck"]] + ([diagnosis["second"]["bottleneck"]] if diagnosis["second"] else [])
    for name in named:
        if not re.search(MENTIONS[name], diagnosis["headline"], re.IGNORECASE):
            yield f"nothing of {name}: {diagnosis['headline']!r}"


@invariant
def only_pytorch_programs_are_told_of_pytorch(report: Json) -> Iterator[str]:
    """No word of PyTorch without evidence that the program uses it."""
    if "pytorch" in diagnosis_of(report)["frameworks"]:
        return
    yield from (f"PyTorch's words: {text!r}" for text in sentences(report) if PYTORCH.search(text))


@invariant
def a_busy_gpu_is_not_called_too_large(report: Json) -> Iterator[str]:
    """Where kernels keep a GPU busy and do not leave the chip empty, nobody proposes a smaller one."""
    devices = working(devices_of(judged_phases(report)))
    busy = [key for key, device in devices.items() if (shares_of(device).get("idle_ns", 1.0)) < 1 - BUSY]
    if not busy or diagnosis_of(report)["bottleneck"] == "parallelism":
        return
    yield from (f"busy over 90%, and: {text!r}" for text in sentences(report) if SMALLER_GPU.search(text))


@invariant
def pinning_is_proposed_where_it_saves(report: Json) -> Iterator[str]:
    """Where nothing is saved by it, and no time goes to copies, no advice is to pin memory. A prediction of nothing has
    a bound of its own."""
    for finding in report["findings"]:
        saves = finding["saves"]
        if (
            finding["bottleneck"] == "copies"
            and saved_share(finding) == 0
            and not (saves and saves["method"] == "replay")
        ):
            yield from (f"saves nothing, and: {text!r}" for text in finding["advice"] if PINNING.search(text))
    account = account_of(judged_phases(report))
    if account.get("copies", 0) or account.get("sync", 0) or account.get("memory", 0):
        return
    advice = [text for finding in report["findings"] for text in finding["advice"]]
    yield from (f"no copies, and: {text!r}" for text in advice if PINNING.search(text))


@invariant
def who_cannot_tell_fixes_nothing(report: Json) -> Iterator[str]:
    """Where the diagnosis is that the trace cannot tell, no other sentence says what to fix first."""
    diagnosis = diagnosis_of(report)
    if diagnosis["bottleneck"] != "unknown" or not TELLING_NOTHING.search(diagnosis["headline"]):
        return
    others = [text for text in sentences(report) if text not in (diagnosis["headline"], diagnosis["action"])]
    yield from (f"cannot tell, and: {text!r}" for text in others if FIX_FIRST.search(text))


MOSTLY = re.compile(r"(?<!\()(?<!% )\bmostly (?!empty)(?P<what>.+?)(?=; what that wait|; “|\. |\.$|, awaited|$)")
QUOTED = re.compile(r"“(?P<title>[^”]*)”")
IN_PLACE = re.compile(r", mostly (?:awaited )?(?P<where>in .+?)(?P<more>…?)$")
AROUND = re.compile(r"between|after ")


@invariant
def mostly_is_more_than_half(report: Json) -> Iterator[str]:
    """What a headline calls most of a bottleneck's time is named in a finding, with more than half of that time, or a
    finding on nearly all of it says so; what a finding names is a part of its own time."""
    judged, findings = judged_phases(report), report["findings"]
    account = account_of(judged)
    for finding in findings:
        for part in finding.get("named", ()):
            if part["share"] > finding["share"] + ROUNDED:
                yield f"{finding['id']}: {part['text']!r} takes {part['share']} of {finding['share']}"
    total = sum(account.values())
    for said in MOSTLY.finditer(QUOTED.sub("“”", diagnosis_of(report)["headline"])):
        shares = [
            (part["share"], finding["bottleneck"])
            for finding in findings
            for part in finding.get("named", ())
            if any(text.startswith(said["what"]) for text in (part["text"], part.get("short", "")))
        ]
        if AROUND.match(said["what"]):
            shares += [
                (each["share"] / 2 / NEARLY, each["bottleneck"]) for each in findings if each.get("summary") == said[0]
            ]
        if not any(2 * share * total > account[bottleneck] * (1 - ROUNDED) for share, bottleneck in shares):
            yield f"{said[0]!r} is not more than half of it: {shares}, {dict(account)}"


@invariant
def quoted_titles_are_those_of_findings(report: Json) -> Iterator[str]:
    """The headline quotes titles of findings only."""
    titles = [finding["title"] for finding in report["findings"]]
    quoted = [each["title"] for each in QUOTED.finditer(diagnosis_of(report)["headline"])]
    yield from (f"no finding is called {each!r}" for each in quoted if each not in titles)


@invariant
def a_title_names_where_most_of_its_time_is(report: Json) -> Iterator[str]:
    """If a title says that most is in a place, more than half of its time is there."""
    for finding in report["findings"]:
        if (said := IN_PLACE.search(finding["title"])) is None:
            continue
        where = said["where"] if said["more"] else said["where"] + "\0"
        parts = [(part["share"], part["text"] + "\0") for part in finding.get("named", ())]
        shares = [share for share, text in parts if where in text or text.startswith(where.removeprefix("in "))]
        if not any(2 * each > finding["share"] * (1 - ROUNDED) for each in shares):
            yield f"{finding['title']!r}: {shares} of {finding['share']}"
