"""Threads and CPUs in every format: what is said, what is not said, and names that cannot act."""

from __future__ import annotations

import msgspec
import pytest

from nsysdiag.document.svg import strip_plots
from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.formats.frames import frames
from nsysdiag.formats.tables import tables
from nsysdiag.host.facts import HostReport
from nsysdiag.host.show import facts, host_sentences, role, stall_label, thread_name, window_strips
from tests.output.host_samples import host_report, launching, unknown
from tests.output.samples import device, report


def rendered(name: str, host: HostReport | None) -> str:
    made = msgspec.structs.replace(report([device()], []), host=host)
    return FORMATS[name].render(made, RenderOptions(width=100, details=True)).decode()


def changed(**fields: object) -> HostReport:
    return msgspec.structs.replace(host_report(), **fields)


def quiet() -> HostReport:
    """A host that nothing stands out of."""
    calm = msgspec.structs.replace(launching(["python3", "x"]), preempted_ns=0, worst_stall=None)
    return changed(threads=[calm], change_points=[], sync_latency=None, shortage=[])


def test_sentences() -> None:
    assert host_sentences(host_report()) == [
        "python3 lost its CPU to python3",
        "python3 lost its CPU to /usr/bin/python3",
        "From 0.050000 s to the end, 50.0 ms into the work, these differ: context switches a second 200, then "
        "4,000; launching threads ready to run without a CPU 0.0%, then 40.0% (medians).",
        "From 0.080000 s to the end, 80.0 ms into the work, these differ: GPU busy 90.0%, then 30.0% (medians).",
        "Synchronizations return 15.0 times as late after their work in the quarter of the time with most time of "
        "other threads on the CPUs of launching threads as in the opposite quarter. Medians: 90.0 µs of 32 against "
        "6.00 µs of 24. The same quarters had others on their CPU 40.0% of the time, 4,000 context switches a second "
        "against others on their CPU 0.0% of the time, 200 context switches a second; this is a correlation, not "
        "proof.",
    ]


def test_nothing_is_said_where_nothing_stands_out() -> None:
    assert host_sentences(quiet()) == []
    assert "Host: threads" not in rendered("txt", quiet())
    assert "Host: threads" not in rendered("txt", None)
    assert "Host: threads" not in rendered("md", None)
    assert "Host: threads" not in rendered("html", None)
    assert "Host: threads" in rendered("md", host_report())
    assert "Host: threads" not in rendered("md", changed(threads=[]))


@pytest.mark.parametrize(("ratio", "busy_ns", "said"), [(1.5, 20_000, 1), (1.4, 20_000, 0), (1.5, 10_999, 0)])
def test_late_synchronizations_must_be_late_enough(ratio: float, busy_ns: int, said: int) -> None:
    latency = host_report().sync_latency
    assert latency is not None
    assert latency.busy is not None
    busy = msgspec.structs.replace(latency.busy, p50_ns=busy_ns)
    found = msgspec.structs.replace(latency, busy=busy, p50_ratio=ratio)
    assert len(host_sentences(changed(shortage=[], threads=[], change_points=[], sync_latency=found))) == said


def test_late_synchronizations_where_it_is_not_known_who_had_the_cpu() -> None:
    """Parts are told apart by context switches: nothing is said of others on a CPU."""
    latency = host_report().sync_latency
    assert latency is not None
    assert latency.quiet is not None
    assert latency.busy is not None
    quiet, busy = (msgspec.structs.replace(each, crowded_share=None) for each in (latency.quiet, latency.busy))
    found = msgspec.structs.replace(latency, quiet=quiet, busy=busy, by="switches_per_second")
    (line,) = host_sentences(changed(shortage=[], threads=[], change_points=[], sync_latency=found))
    assert "in the quarter of the time with most context switches as in the opposite quarter" in line
    assert line.endswith(
        "4,000 context switches a second against 200 context switches a second; this is a correlation, not proof."
    )


def test_lost_time_that_nobody_is_seen_to_have_taken() -> None:
    (line,) = host_sentences(changed(shortage=[], change_points=[], sync_latency=None))
    assert line.startswith("python3 4242, which launches on gpu0, was ready and had no CPU for 20.0 ms (20.0% of")
    assert "cpuctxsw=system-wide" in line


def test_facts_say_what_is_not_known() -> None:
    assert "Scheduling was not captured" in facts(changed(contention=None))[1]
    assert facts(host_report())[1] == (
        "The threads ran on 2 of 16 CPUs seen in the trace; together they waited 60.0 ms for a CPU, 33.0 ms of it "
        "while another thread in the trace had it."
    )


def test_roles_and_stalls() -> None:
    thread = launching(["python3", "x"])
    assert role(thread) == "launches on gpu0"
    assert role(msgspec.structs.replace(thread, launches={})) == "waits for the GPU"
    assert role(msgspec.structs.replace(thread, launches={}, sync_calls=0)) == "CUDA calls"
    assert role(unknown(0, "worker")) == "no CUDA calls"
    assert thread_name(msgspec.structs.replace(thread, name=None)) == "thread 4242"
    assert stall_label(thread) == "4.00 ms at 0.061000 s in x, ready to run without a CPU"
    assert stall_label(unknown(0, "worker")) == ""


def test_an_estimate_is_called_one() -> None:
    for name in ("md", "html"):
        assert "about 30.0% (samples)" in rendered(name, host_report())


def test_text_is_short() -> None:
    text = rendered("txt", host_report())
    block = text[text.index("Host: threads and CPUs") : text.index("Trace health")]
    assert sum(line.startswith("  ") and line[2:3].isupper() for line in block.splitlines()) <= 4


def test_markdown_has_the_tables() -> None:
    text = rendered("md", host_report())
    assert (
        "| `python3 4242` | launches on gpu0 | 70.0% | 25.0% | 20.0% | 210 | 40.0% | 4.00 ms at 0.061000 s in gzip"
        in text
    )
    assert "| `python3 5001 of python3 5000` | 12.0 ms |" in text
    assert "| `gzip 5002` | 10.0 ms |" in text


def test_csv_tables() -> None:
    made = tables(msgspec.structs.replace(report([device()], []), host=host_report()))
    threads = made["threads"].decode().splitlines()
    assert threads[0].startswith("process_id,thread_id,thread_name,process,role,launches,on_cpu_ns")
    assert threads[1].startswith(
        "4242,4242,python3,gzip,launches on gpu0,gpu0:1200,70000000,25000000,5000000,20000000,10,"
    )
    assert len(threads) == 5
    windows = made["host_windows"].decode().splitlines()
    assert windows[4] == "30000000,40000000,2,0,,,0,12000.0,12000.0,0.9,0.05,0.0,0.0,"
    assert len(windows) == 11


def test_frames_tell_unknown_from_zero() -> None:
    made = frames(msgspec.structs.replace(report([device()], []), host=host_report()))["threads"]
    assert made["on_cpu_ns"].isna().tolist() == [False, True, True, True]
    assert made["sync_calls"].tolist() == [80, 0, 0, 0]


class TestChart:
    def test_strips(self) -> None:
        chart = window_strips(host_report())
        assert chart is not None
        switches, *_more = strip_plots(chart)
        assert (switches.width, switches.moments) == (100, [50, 60, 80])
        assert (chart.strips[0].title, chart.strips[0].note) == ("Context switches a second", "up to 4,000")
        assert switches.paths[0].d == "M0 1000V950H50V0H100V1000z"
        assert switches.hovers[0].tooltip == "at 0.000000 s: 200"

    def test_what_is_unknown_is_no_bar(self) -> None:
        chart = window_strips(host_report())
        assert chart is not None
        at = next(at for at, strip in enumerate(chart.strips) if strip.title.startswith("Return"))
        late = strip_plots(chart)[at]
        assert late.hovers[3].tooltip == "at 0.030000 s: not known"
        assert late.paths[0].d.count("z") == 2

    def test_nothing_to_draw(self) -> None:
        assert window_strips(changed(windows=[])) is None
        without = rendered("html", changed(windows=[]))
        assert "Host: threads" in without
        assert " equal windows from " not in without
        assert "10 equal windows from " in rendered("html", host_report())


HOSTILE = "<script>alert(1)</script>|`[x](http://x)`\x1b[31m\n=cmd()"


@pytest.mark.parametrize("name", ["html", "md", "txt"])
def test_names_cannot_act(name: str) -> None:
    text = rendered(name, host_report([HOSTILE, HOSTILE, HOSTILE]))
    assert "\x1b" not in text
    # In Markdown a name is a code span, in which nothing acts, and in a table its pipes are escaped.
    assert name != "html" or "<script>alert(1)" not in text
    rows = [line for line in text.splitlines() if name == "md" and line.startswith("| ``")]
    assert {line.count("|") - line.count("\\|") for line in rows} <= {3, 9}
    assert len(rows) == (7 if name == "md" else 0)


def test_names_in_csv_are_no_formulas() -> None:
    made = msgspec.structs.replace(report([device()], []), host=host_report(["=cmd()", "+x", "@y"]))
    text = tables(made)["threads"].decode()
    assert ",'=cmd()," in text
    assert ",=cmd()" not in text
