"""Programs unlike those that the rules were made with: is what is said of them true, or said to be unsure?"""

from __future__ import annotations

from tests.unlike import (
    adaptive,
    computing,
    fleets,
    grids,
    handed,
    inputs,
    irregular,
    models,
    others,
    outside,
    paced,
    parallel,
    practices,
    sciences,
    serving,
    states,
    streams,
    systems,
    tasks,
    training,
)
from tests.unlike.made import CLASSES, Class, Fix, Made

__all__ = [
    "CLASSES",
    "Class",
    "Fix",
    "Made",
    "adaptive",
    "computing",
    "fleets",
    "grids",
    "handed",
    "inputs",
    "irregular",
    "models",
    "others",
    "outside",
    "paced",
    "parallel",
    "practices",
    "sciences",
    "serving",
    "states",
    "streams",
    "systems",
    "tasks",
    "training",
]
