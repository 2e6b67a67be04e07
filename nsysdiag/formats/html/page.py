"""The report as one HTML file, complete without scripts and network, and safe for any names in the trace.

Control characters are made visible, and the template engine escapes text. A content security policy allows only the
page's own style and scripts, by their hashes.
"""

from __future__ import annotations

import gzip
import re
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket, BytecodeCache
from jinja2.utils import htmlsafe_json_dumps
from markupsafe import Markup, escape
from msgspec import Struct

from nsysdiag import units
from nsysdiag.arrays.background import Background
from nsysdiag.document import names, view, words
from nsysdiag.document.blocks import Detail, Document, Section, shown
from nsysdiag.document.drawings import safe_color
from nsysdiag.document.markup import breakable, html_of, width_of
from nsysdiag.document.names import visible
from nsysdiag.document.svg import FILTERS, percent
from nsysdiag.document.view import Context
from nsysdiag.formats import RenderOptions, sections
from nsysdiag.formats.html import assets
from nsysdiag.formats.html.assets import asset
from nsysdiag.formats.html.timeline_data import all_drawn_gaps, timeline_data, timelines

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nsysdiag.report import Report, Tool


# The terms of the field that reports use, each explained in a sentence: a page of the documentation has them, and the
# page as tooltips, on hover, and by keyboard where each first occurs.

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
        self._silent = 0
        self._in_name = False
        self._section: set[str] = set()
        self._reached: set[str] = set()

    def explained(self, html: str) -> str:
        """The terms of the text between tags, explained."""
        parts = _TAG.split(html)
        for at, part in enumerate(parts):
            if at % 2:
                self._pass(part)
            elif part and not self._in_name and not self._silent:
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
            step = -1 if is_end else 1
            self._open[name] += step
            self._silent += step if name in _SILENT else 0

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


# Templates as compiled ahead of time: to compile them takes longer than to fill those of a small page.
#
# `nsysdiag/data/templates.json.gz` holds the Python that jinja2 makes of each template. What is not in it, as a
# template that was changed since, is compiled when it is used. Nothing is written at run time.

FILE = Path(__file__).parents[2] / "data" / "templates.json.gz"


class Compiled(msgspec.Struct, frozen=True):
    """Python source by the checksum that jinja2 makes of a template's source, and which version of jinja2 made it."""

    version: str
    sources: dict[str, str]


class AheadOfTime(BytecodeCache):
    """Gives jinja2 what was compiled ahead, from the same source by the same version."""

    def get_cache_key(self, name: str, filename: str | None = None) -> str:
        """The file of the template, which tracebacks name."""
        return filename or name

    def load_bytecode(self, bucket: Bucket) -> None:
        """Fill the bucket if its template was compiled ahead."""
        source = sources().get(bucket.checksum)
        if source is not None:
            bucket.code = compile(source, bucket.key, "exec")

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep nothing."""


@cache
def sources() -> dict[str, str]:
    """What was compiled ahead; nothing if another version of jinja2 runs."""
    known = msgspec.json.decode(gzip.decompress(FILE.read_bytes()), type=Compiled)
    return known.sources if known.version == jinja2.__version__ else {}


GENERATOR = "nsysdiag"
HEAD_BYTES = 4096
PUT_IN_LAST = Markup("\0")
"""Stands for what is put in last: in names control characters are made visible."""
_KEPT = re.compile(r"(<(?:pre|script|style)\b.*?</(?:pre|script|style)>)", re.DOTALL)


class PlacedSection(Struct, frozen=True):
    """A section with its place on the page."""

    anchor: str
    section: Section


def render(report: Report, options: RenderOptions) -> bytes:
    """The whole page as UTF-8."""
    context = Context.of(report)
    report = context.report
    timeline = assets.timeline_script() if timelines(report) else None
    with Background() as beside:
        # To unpack all gaps, and to compress what the scripts draw, takes as long as all else, without Python's lock:
        # it is put in last.
        gaps = beside.begin(all_drawn_gaps, report)
        drawn = beside.begin(lambda: timeline_data(report, context.causes, gaps.result()))
        page = framed(
            "report.html",
            report.tool,
            assets.page_style(),
            assets.page_script(),
            [timeline.source] if timeline else [],
            report=report,
            options=options,
            groups=_groups(context),
            # The section's own templates see `values`.
            html_of=lambda drawn, level, values: html_of(
                drawn.section.blocks,
                environment(),
                level,
                {**values, "section": drawn, "drawn_gaps": gaps, "timeline_data": PUT_IN_LAST},
            ),
            several=len(report.devices) > 1,
            timeline_script=timeline.packed if timeline else "",
        )
    if timeline is None:
        return page
    data = htmlsafe_json_dumps(drawn.result(), **environment().policies["json.dumps_kwargs"])
    return page.replace(PUT_IN_LAST.encode(), data.encode())


def framed(
    template: str, tool: Tool, style: str, script: str, packed: Sequence[str] = (), /, **values: object
) -> bytes:
    """A whole page as UTF-8: `template` rendered with `values`, under a policy that allows its style and its scripts,
    including the `packed` ones."""
    theme = asset("theme.js")
    html = (
        environment()
        .get_template(template)
        .render(
            values,
            generator=f"{GENERATOR} {tool.version}",
            policy=policy(style, theme, script, *packed),
            style=Markup(style),  # our own files, guarded by asset()
            theme=Markup(theme),
            script=Markup(script),
        )
    )
    return (explained(squeezed(html)).rstrip() + "\n").encode()


def document(
    found: Document, tool: Tool, settings: Mapping[str, object], options: RenderOptions, *sheets: str
) -> bytes:
    """A page of sections that are blocks alone, with further style sheets by their names, as UTF-8."""
    return framed(
        "document.html",
        tool,
        assets.page_style(*sheets),
        assets.page_script(),
        document=found,
        sections=[section for section in found.sections if shown(section.blocks, Detail.PAGE)],
        html_of=lambda blocks, level: html_of(blocks, environment(), level, {}),
        tool=tool,
        settings=settings,
        options=options,
    )


def squeezed(html: str) -> str:
    """The page without indentation and empty lines: a tenth of a large one. Where blanks count they stay."""
    parts = _KEPT.split(html)
    return "".join(part if at % 2 else assets.BLANKS.sub("\n", part) for at, part in enumerate(parts))


def policy(style: str, *scripts: str) -> str:
    """A content security policy that allows this style and these scripts, images from data, and nothing else."""
    hashes = " ".join(assets.content_hash(script) for script in scripts)
    return (
        f"default-src 'none'; style-src {assets.content_hash(style)}; script-src {hashes}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


@cache
def environment() -> Environment:
    """The template engine: everything escaped, control characters made visible, unknown names an error."""
    made = Environment(
        loader=FileSystemLoader(assets.templates_folder()),
        bytecode_cache=AheadOfTime(),
        autoescape=True,
        auto_reload=False,
        finalize=lambda value: visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.policies["json.dumps_kwargs"] = {"sort_keys": True, "separators": (",", ":")}
    made.filters |= {
        "ns": units.format_ns,
        "signed": units.format_signed_ns,
        "exact": units.format_exact_ns,
        "share": units.format_share,
        "count": units.format_count,
        "size": units.format_bytes,
        "instant": words.instant,
        "clip": names.clip,
        "brief": names.brief,
        "breakable": breakable,
        "width": width_of,
        "percent": percent,
        "color": safe_color,
        "slices_by_time": view.slices_by_time,
        "evidence": view.evidence,
        "flags": view.flags,
        **FILTERS,
    }
    made.globals |= {"words": words, "names": names}
    return made


def _groups(context: Context) -> list[dict[str, Any]]:
    """The groups of sections with their places on the page. Anchors are numbered if there are several devices; the keys
    of these come from the trace and stay out of them."""
    found, devices = [], count()
    for group in sections.groups(context):
        anchor = f"gpu-{next(devices)}" if group.device else ""
        prefix = f"{anchor}-" if group.nested else ""
        drawn = [each for each in group.sections if shown(each.blocks, Detail.PAGE)]
        placed = [PlacedSection(prefix + each.id, each) for each in drawn]
        found.append({"anchor": anchor, "device": group.device, "sections": placed})
    return found


def is_ours(data: bytes) -> bool:
    """Does the head of the page name us as its generator?"""
    return f'<meta name="generator" content="{GENERATOR} '.encode() in data[:HEAD_BYTES]
