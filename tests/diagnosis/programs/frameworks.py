"""Programs in Python, with PyTorch and without: whose words the advice may use."""

from __future__ import annotations

from tests.diagnosis.programs.registry import MS, US, Marks, program, read
from tests.diagnosis.readings import NO_PYTORCH, SMALLER
from tests.simulator import Simulation
from tests.simulator.actions import Channel, Thread
from tests.simulator.host import Body

STEPS = 60


@program(
    read(
        "input",
        seconds=("kernels",),
        lead=(50, 70),
        headline=("input|data|load|worker",),
        never=(SMALLER,),
        frameworks=("pytorch",),
        no_frameworks=("jax", "tensorflow", "mpi"),
    ),
    {"compute": (0.3, 0.45), "data_loading": (0.5, 0.68)},
    said=(r"num_workers|DataLoader",),
)
def pytorch_waits_for_its_loader(sim: Simulation, marks: Marks) -> None:
    """A training loop in PyTorch waits for the worker that reads and decodes its batches.

    worker  [read file ...][decode][put][read file ...]
    main    [wait .....................][forward, backward]
    """
    batches: Channel = sim.channel()

    def load(t: Thread) -> Body:
        for _ in range(STEPS):
            yield from t.read_file(7 * MS)
            yield from t.compute(3 * MS, "jpeg_idct_islow")
            yield from t.put(batches)

    def main(t: Thread) -> Body:
        marks.begin(t)
        for step in range(STEPS):
            t.push(f"step {step}")
            yield from t.get(batches)
            for name in ("aten::linear", "aten::layer_norm", "aten::gelu", "LinearBackward0"):
                t.push(name)
                yield from t.launch("ampere_sgemm_128x64_tn", 950 * US)
                t.pop()
            yield from t.synchronize()
            yield from t.compute(100 * US, "torch::autograd::Engine::evaluate_function")
            t.pop()
        marks.end(t)

    sim.thread(sim.process([]), load, name="pt_data_worker", loads="name")
    sim.thread(sim.process(), main, name="python3")


@program(
    read(
        "host",
        seconds=("kernels", "sync"),
        lead=(55, 85),
        headline=("host|CPU|Python|interpreter",),
        never=(NO_PYTORCH, SMALLER),
        no_frameworks=("pytorch", "tensorflow", "jax", "mpi"),
    ),
    {"compute": (0.18, 0.22), "host_compute": (0.77, 0.82)},
)
def python_without_pytorch(sim: Simulation, marks: Marks) -> None:
    """A program in Python that launches kernels of its own: nothing shows PyTorch.

    main    [Python ........][l][sync]
    gpu                       [k ]
    """

    def main(t: Thread) -> Body:
        marks.begin(t)
        for _ in range(150):
            yield from t.compute(4 * MS)
            yield from t.launch("cupy_multiply__float32_float32", 1 * MS)
            yield from t.synchronize()
        marks.end(t)

    sim.thread(sim.process(), main, name="python3")
