"""The terms of the field that reports use, each explained in a sentence: a page of the documentation has them, and the
page as tooltips, on hover, and by keyboard where each first occurs."""

from __future__ import annotations

import re

from markupsafe import escape

TERMS = {
    "blocking copy": "A copy whose call returns only when the copy is done: the thread cannot launch meanwhile.",
    "busy": "The share of the time in which at least one kernel, copy, memory set or graph runs on the GPU.",
    "collective": "An operation that several GPUs do together, such as an all-reduce: each waits for the last one.",
    "confidence": "The share of the time behind a claim for which the trace holds evidence.",
    "CUDA graph": "Many operations that one call launches together.",
    "dashboard": "What nvidia-smi and most monitors show: the time in which any kernel runs, even a small one.",
    "exposed communication": "Communication while no kernel computes: the time by which it makes the step longer.",
    "exposed copies": "Copies while neither kernels compute nor GPUs communicate: the time by which they make the step "
    "longer.",
    "gap": "A time without any work on the GPU, between one operation and the next.",
    "gap group": "Gaps between the same operations in the same NVTX range, with the same largest cause, added up.",
    "host code": "What the thread that launches does on the CPU outside of CUDA and of the operating system.",
    "idle": "The GPU runs no kernel, copy, memory set or graph.",
    "judged time": "The part of the run that the diagnosis is about: the steady steps if there are any.",
    "launch latency": "The time from a launch call to the start of its kernel on an idle GPU.",
    "launch overhead": "Time in which the GPU is idle while a launch is made, or is on its way to the GPU.",
    "launch-bound": "Kernels take less time than their launches, so the host sets the pace.",
    "NVTX": "Ranges that a program marks in its own code, shown by name in a trace.",
    "off CPU": "A thread that runs on no CPU: it waits, or another thread has its CPU.",
    "outstanding": "Launched and not yet finished.",
    "p50": "The median: half of the values are smaller.",
    "p95": "95 of 100 values are smaller.",
    "pageable": "Host memory that the system may move: its copies take an extra step, and rarely run while kernels do.",
    "pinned": "Host memory that stays in its place, so that the GPU copies it directly while kernels run.",
    "preempted": "A thread is ready to run, but another one has its CPU.",
    "replay": "The program is run again as a model of its launches, waits and kernels, with the fix in place.",
    "root cause": "What the thread did that ended the wait: a wait is charged to it rather than to the wait itself.",
    "SM": "Streaming multiprocessor: one of the parts of a GPU that run blocks of threads.",
    "steady": "Steps that repeat in much the same way, after the start-up.",
    "straggler": "A GPU that comes last to collectives, so that the others wait for it.",
    "stream": "A queue of the GPU: its operations run one after the other.",
    "synchronization": "A call in which a thread waits until the GPU has finished.",
    "unified memory": "Memory that moves between host and GPU by itself when one of them touches it.",
}
"""Each term as it is written inside a sentence, and what it means."""
_MAIN = re.compile(r"(?<=<main )(.*)(?=</main>)", re.DOTALL)
_TAG = re.compile(r"(<[^>]*>)")
_SILENT = ("script", "pre", "code", "svg", "a", "button", "option", "abbr")
"""What holds no sentences, or does something else when it is hovered or reached by keyboard."""
_UNREACHED = ("th", "summary", "li")
"""Scripts make buttons of column titles, a summary is reached itself, and entries of legends may be folded."""
_NAME, _ENTRY, _SECTION = '<span class="name', '<li class="entry"', "<section "


def _pattern(term: str) -> str:
    """The term in the singular and plural; one in small letters may begin a sentence."""
    return f"{re.escape(term)}s?" if term != term.lower() else f"(?i:{re.escape(term)}s?)"


_TERM = re.compile(rf"(?<![\w-])(?:{'|'.join(map(_pattern, sorted(TERMS, key=len, reverse=True)))})(?![\w-])")
_MEANINGS = {term.lower(): escape(meaning) for term, meaning in TERMS.items()}


def explained(html: str) -> str:
    """The page with each term explained once in each section of its main part."""
    return _MAIN.sub(lambda main: _Reading().explained(main[0]), html)


class _Reading:
    """What was met on the way through a page: open elements, and the terms of this section and of the page."""

    def __init__(self) -> None:
        self._open = dict.fromkeys((*_SILENT, *_UNREACHED), 0)
        self._in_name = False
        self._section: set[str] = set()
        self._reached: set[str] = set()

    def explained(self, html: str) -> str:
        """The terms of the text between tags, explained."""
        parts = _TAG.split(html)
        for at, part in enumerate(parts):
            if at % 2:
                self._pass(part)
            elif not self._in_name and not any(self._open[tag] for tag in _SILENT):
                parts[at] = _TERM.sub(self._mark, part)
        return "".join(parts)

    def _pass(self, tag: str) -> None:
        if tag.startswith(_SECTION):
            self._section = set()
        self._in_name = tag.startswith(_NAME) or (self._in_name and tag != "</span>")
        name, is_end = tag.strip("</>").split(None, 1)[0], tag.startswith("</")
        if name == "li":
            self._open[name] = int(tag.startswith(_ENTRY))
        elif name in self._open:
            self._open[name] += -1 if is_end else 1

    def _mark(self, found: re.Match[str]) -> str:
        term = found[0].lower()
        term = term if term in _MEANINGS else term.removesuffix("s")
        if term in self._section:
            return found[0]
        self._section.add(term)
        can_reach = term not in self._reached and not any(self._open[tag] for tag in _UNREACHED)
        self._reached |= {term} if can_reach else set()
        reach = ' tabindex="0"' if can_reach else ""
        return f'<abbr class="term"{reach} title="{_MEANINGS[term]}">{found[0]}</abbr>'
