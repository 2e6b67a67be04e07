"""A simulator of host threads and GPU streams that knows what every idle nanosecond was waiting for.

It is written from how threads and streams run, not from how a trace is analyzed: the analysis is held to it.
"""

from tests.simulator.capture import CUDA_ONLY, EVERYTHING, Capture
from tests.simulator.simulation import CAUSES, Simulation, forbidden

__all__ = ["CAUSES", "CUDA_ONLY", "EVERYTHING", "Capture", "Simulation", "forbidden"]
