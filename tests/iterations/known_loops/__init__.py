"""Programs made by chance whose loops are known: what each is made of, and what the report says of it."""

from tests.iterations.known_loops.known import FAMILIES, Known, Loops
from tests.iterations.known_loops.verdict import Verdict, judged

from tests.iterations.known_loops import few_names, inference, solvers, training, varied  # noqa: F401  # isort: skip

__all__ = ["FAMILIES", "Known", "Loops", "Verdict", "judged"]
