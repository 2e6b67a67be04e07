"""A bottleneck is one record: what is said and drawn of it is a field."""

from __future__ import annotations

from nsysdiag.bottlenecks import BOTTLENECK_IDS, BOTTLENECKS, OF_WORK, noun_of, promised, title_of
from nsysdiag.document.view import WORK


def test_each_is_once_in_order() -> None:
    assert tuple(BOTTLENECKS) == BOTTLENECK_IDS
    assert len({each.title for each in BOTTLENECKS.values()}) == len(BOTTLENECKS)


def test_work_is_that_of_iterations() -> None:
    assert OF_WORK.keys() == WORK.keys()
    assert {work: BOTTLENECKS[name].part for work, name in OF_WORK.items()} == {
        work: part for work, (part, _) in WORK.items()
    }


def test_one_of_a_later_version_stands_for_itself() -> None:
    assert noun_of("next_thing") == title_of("next_thing") == "next thing"
    assert promised("next_thing")
    assert not promised("unknown")
