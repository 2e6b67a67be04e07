"""Programs unlike those that the rules were made with: is what is said of them true, or said to be unsure?"""

from __future__ import annotations

from tests.unlike import (
    computing,
    grids,
    inputs,
    irregular,
    models,
    others,
    outside,
    paced,
    parallel,
    practices,
    serving,
    states,
    streams,
    training,
)
from tests.unlike.made import CLASSES, Class, Fix, Made

__all__ = [
    "CLASSES",
    "Class",
    "Fix",
    "Made",
    "computing",
    "grids",
    "inputs",
    "irregular",
    "models",
    "others",
    "outside",
    "paced",
    "parallel",
    "practices",
    "serving",
    "states",
    "streams",
    "training",
]
