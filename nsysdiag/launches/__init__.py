"""How work reached the device: calls, queue depth, launch-bound phases, CUDA graphs."""
