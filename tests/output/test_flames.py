"""Flame graphs in the page and as files for other programs."""

from __future__ import annotations

import json
import re

import msgspec
import pytest

from nsysdiag.formats import FORMATS, RenderOptions
from nsysdiag.formats.viewers import is_ours
from nsysdiag.ranges.facts import FlameStack
from tests.output.flame_samples import MS, flame_graph
from tests.output.page import Element, parse
from tests.output.samples import device, report


def by_id(root: Element, name: str) -> Element:
    return next(element for element in root.walk() if element.attributes.get("id") == name)


def written(name: str, *, stacks: list[FlameStack] | None = None) -> bytes:
    made = report([device(flames=flame_graph())] if stacks is None else [], [])
    return FORMATS[name].render(msgspec.structs.replace(made, host_stacks=stacks or []), RenderOptions())


@pytest.mark.slow
def test_the_icicle_is_the_idle_time() -> None:
    section = by_id(parse(written("html")), "flames")
    idle, waits = (each for each in section.all("svg") if each.attributes.get("class") == "icicle")
    cells = {each.all("title")[0].text: each.all("rect")[0].attributes["width"] for each in idle.all("g")}
    assert cells["Idle time: 40.0 ms, 100.0%"] == "100.000%"
    assert cells["Waiting in a synchronisation › train: 18.0 ms, 45.0%"] == "45.000%"
    assert waits.all("title")[0].text == "Waits for work of the GPU: 30.0 ms, 100.0%"
    parts = [rect.attributes for cell in (*idle.all("g"), *waits.all("g")) for rect in cell.all("rect")[1:]]
    assert {each.get("fill", each.get("class")) for each in parts} >= {"fill-compute"}
    assert all(each.get("fill", "").startswith("#") or each.get("class", "").startswith("fill-") for each in parts)
    assert sum("fill" in each for each in parts) >= len(idle.all("g"))


def test_collapsed_stacks() -> None:
    """A frame is no separator: `;` in a name would begin another frame, and the last space precedes the number."""
    lines = written("folded").decode().splitlines()
    assert lines[0] == "gpu0 idle;Waiting in a synchronisation;train;cudaStreamSynchronize;main;load 10000000"
    assert lines[-1] == "gpu0 waits;gemm: a<b>;train;cudaStreamSynchronize 30000000"
    assert all(re.fullmatch(r"[^;]+(;[^;]+)* [0-9]+", line) for line in lines)
    assert sum(int(line.rpartition(" ")[2]) for line in lines if line.startswith("gpu0 idle")) == 40 * MS


def test_speedscope() -> None:
    """What its schema asks of a sampled profile."""
    made = json.loads(written("speedscope"))
    assert made["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = [each["name"] for each in made["shared"]["frames"]]
    assert len(frames) == len(set(frames))
    for profile in made["profiles"]:
        assert (profile["type"], profile["unit"], profile["startValue"]) == ("sampled", "nanoseconds", 0)
        assert len(profile["samples"]) == len(profile["weights"])
        assert sum(profile["weights"]) == profile["endValue"]
        assert max(at for sample in profile["samples"] for at in sample) < len(frames)
    assert [each["name"] for each in made["profiles"]] == ["gpu0 idle", "gpu0 waits"]


def test_without_a_gpu_the_host_s_samples() -> None:
    stacks = [FlameStack(["main thread 7", "main", "load"], 5 * MS)]
    assert written("folded", stacks=stacks) == b"samples;main thread 7;main;load 5000000\n"
    assert "main › load" in by_id(parse(written("html", stacks=stacks)), "samples").whole_text()


def test_files_are_known_again() -> None:
    assert all(is_ours(written(name)) for name in ("folded", "speedscope"))
    assert not is_ours(b"main;load 10\n")
    assert not is_ours(b'{"$schema": "https://www.speedscope.app/file-format-schema.json", "exporter": "py-spy"}')
