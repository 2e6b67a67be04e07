"""The causal chain of a finding in words: root, effect, where it shows, fix."""

from __future__ import annotations

from nsysdiag import typed
from nsysdiag.arrays.claim import EvidenceLabel
from nsysdiag.causes import CAUSES
from nsysdiag.fields import Sentence
from nsysdiag.report import Root, Thread
from nsysdiag.typed import joined, say
from nsysdiag.units import format_count, format_ns, uncapitalized

_ON_THREAD = "{call}{label} on {thread}"
_ON_DEVICE = "{title}{label}"


def thread_words(thread: Thread | None, others: int) -> Sentence:
    """The thread with most of it, and how many more there are: `thread 4242 'python' and 2 more`."""
    if thread is None:
        return "an unknown thread"
    name = say(" '{}'", typed.thread(thread.name)) if thread.name else ""
    return say("thread {}{}", thread.tid, name) + (f" and {others} more" if others else "")


def opening(
    cause: str, *, call: Sentence | None, label: EvidenceLabel | None, thread: Sentence, code: Sentence
) -> Sentence:
    """The first step of a chain; `code` names the functions in CPU samples."""
    rule = CAUSES[cause]
    pattern = rule.opening or (_ON_THREAD if rule.side in ("host", "root") else _ON_DEVICE)
    return say(
        pattern,
        call=call or uncapitalized(rule.title),
        label=f" ({label.words})" if label else "",
        thread=thread,
        title=uncapitalized(rule.title),
        code=say(": {}", code) if code else "",
    )


def effect(cause: str, *, total_ns: int, longest_ns: int, median_ns: int, count: int, made: bool) -> str:
    """The effect on the device, over `count` gaps."""
    times = f"{format_ns(median_ns)} at a time, {format_count(count)} times"
    if 2 * median_ns * count < total_ns:
        times = f"{format_ns(total_ns)} in {format_count(count)} gaps, {format_ns(longest_ns)} in the longest"
    if 2 * longest_ns >= total_ns:
        rest = f", and {format_ns(total_ns - longest_ns)} in {format_count(count - 1)} more" if count > 1 else ""
        times = f"{format_ns(longest_ns)} in one gap{rest}"
    if made:
        return f"the queue is empty when the call returns, and stays empty for {times}"
    late = CAUSES[cause].side in ("host", "call", "root")
    return f"the queue is empty for {times}" if late else f"the device waits {times}"


def shown(next_operation: str, path: list[str]) -> Sentence:
    """Where it shows."""
    inside = say(" in {}", joined(" › ", map(typed.nvtx, path))) if path else ""
    return say("idle before {}{}", typed.kernel(next_operation), inside)


def from_root(root: Root | None, cause: str) -> list[Sentence]:
    """The steps from the root to the wait, where wake-ups were followed there and led to `cause`."""
    return root.chain[::-1] if root is not None and root.cause in ("", cause) else []
