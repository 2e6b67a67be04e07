"""The phase that is judged, and the devices that count."""

from __future__ import annotations

from msgspec import structs

from nsysdiag.arrays.intervals import Intervals
from nsysdiag.diagnosis.focus import Focus, Scope, focus_of, job_account, window_ns, working
from nsysdiag.phases.facts import Basis, PhaseDevice, Waited, added
from nsysdiag.phases.phases import JobPhases
from nsysdiag.phases.steps import FoundPhase


def did(key: str = "gpu0", *, idle: int = 0, outside: int = 0, **account: int) -> PhaseDevice:
    """A device whose work is kernels and parallelism, and whose idle time is all the rest of its account."""
    compute = account.get("kernels", 0) + account.get("parallelism", 0)
    return PhaseDevice(
        key=key,
        compute_ns=compute,
        exposed_comm_ns=0,
        exposed_copy_ns=0,
        idle_ns=idle or sum(account.values()) - compute,
        outside_ns=outside,
        ledger={name: ns for name, ns in account.items() if name not in ("kernels", "parallelism")},
        account=account,
    )


def job(basis: Basis, judged: list[int], *names: str) -> JobPhases:
    """Phases of 100 ns each."""
    phases = [FoundPhase(name, 100 * at, 100 * at + 100) for at, name in enumerate(names)]  # type: ignore[arg-type]
    return JobPhases(0, 100 * len(names), phases, basis, "", judged)


STEADY = job("steady", [1, 3], "start-up", "steady", "pause", "steady", "teardown")


class TestFocus:
    def test_of_the_judged_phases_that_with_most_time_outside_of_kernels(self) -> None:
        """The pause is idle altogether, and not judged; of both that are the second one loses more."""
        phases = [did(startup=100), did(kernels=70, sync=30), did(unknown=100), did(kernels=60, host=40), did()]
        found = focus_of(STEADY, [phases])
        assert (found.phase, found.places) == (3, [3])
        assert (found.parts.start.tolist(), found.parts.end.tolist()) == ([300], [400])

    def test_empty_chips_are_kernels(self) -> None:
        phases = [did(), did(kernels=70, sync=30), did(), did(parallelism=80, host=20), did()]
        assert focus_of(STEADY, [phases]).phase == 1

    def test_where_little_is_outside_of_kernels_the_longest(self) -> None:
        """8 µs of a phase of 3 ms are no reason to judge that one and not the other, of 30 ms."""
        phases = [did(), did(kernels=3_000, sync=8), did(), did(kernels=30_000, host=2), did()]
        assert focus_of(STEADY, [phases]).phase == 3
        phases[1] = did(kernels=3_000, sync=800)
        assert focus_of(STEADY, [phases]).phase == 1

    def test_the_first_of_equal_ones(self) -> None:
        phases = [did(), did(kernels=70, sync=30), did(), did(kernels=70, host=30), did()]
        assert focus_of(STEADY, [phases]).phase == 1

    def test_devices_count_together(self) -> None:
        first = [did(), did(kernels=70, sync=30), did(), did(kernels=75, host=25), did()]
        second = [did("gpu1"), did("gpu1", kernels=90, sync=10), did(), did("gpu1", kernels=70, host=30), did()]
        assert focus_of(STEADY, [first, second]).phase == 3

    def test_waiting_for_kernels_of_another_device_is_outside_of_kernels(self) -> None:
        waits = structs.replace(did(kernels=100), waited=[Waited("gpu1", "kernels", 40), Waited("gpu1", "copies", 60)])
        phases = [did(), waits, did(), did(kernels=61, host=39), did()]
        assert focus_of(STEADY, [phases]).phase == 1

    def test_of_a_cold_start_all(self) -> None:
        cold = job("cold", [0], "start-up", "teardown")
        found = focus_of(cold, [[did(startup=100), did(kernels=100)]])
        assert (found.phase, found.places) == (None, [0, 1])
        assert (found.parts.start.tolist(), found.parts.end.tolist()) == ([0], [200])

    def test_nothing(self) -> None:
        found = focus_of(job("none", []), [])
        assert (found.phase, found.places, len(found.parts)) == (None, [], 0)


class TestDevices:
    def test_one_with_less_than_5_per_cent_of_the_busiest_one_s_work_is_merely_touched(self) -> None:
        """A program opens a context on each GPU, and works on one of them."""
        devices = [did("gpu0", kernels=1_000), did("gpu1", kernels=50, sync=950), did("gpu2", kernels=49, sync=951)]
        assert [each.key for each in working(devices)] == ["gpu0", "gpu1"]
        assert job_account(devices) == {"kernels": 1_050, "sync": 950}

    def test_where_nobody_works_all_count(self) -> None:
        assert job_account([did("gpu0", sync=5), did("gpu1", host=7)]) == {"sync": 5, "host": 7}

    def test_phases_of_one_device_add_up(self) -> None:
        whole = added([did(kernels=30, sync=20, outside=7), did(kernels=10, host=5), did(sync=1)])
        assert (whole.compute_ns, whole.idle_ns, whole.outside_ns, window_ns(whole)) == (40, 26, 7, 66)
        assert whole.account == {"kernels": 40, "sync": 21, "host": 5}
        assert whole.ledger == {"sync": 21, "host": 5}


def test_waits_add_up_by_device_and_bottleneck() -> None:
    one = structs.replace(did(kernels=9), waited=[Waited("gpu1", "kernels", 4), Waited("gpu1", "copies", 1)])
    other = structs.replace(did(kernels=9), waited=[Waited("gpu2", "kernels", 2), Waited("gpu1", "kernels", 3)])
    assert added([one, other]).waited == [
        Waited("gpu1", "kernels", 7),
        Waited("gpu1", "copies", 1),
        Waited("gpu2", "kernels", 2),
    ]


def test_one_of_several_goes_by_the_name_that_the_screen_has() -> None:
    second = Focus(Intervals.empty(), [3], 3)
    many = structs.replace(STEADY, phases=[structs.replace(each, repeats=9) for each in STEADY.phases])
    assert (Scope.of(STEADY, second).which, Scope.of(many, second).which) == ("repeats 2", "steady 2")
    assert Scope.of(job("steady", [1], "start-up", "steady"), Focus(Intervals.empty(), [1], 1)).which == ""
