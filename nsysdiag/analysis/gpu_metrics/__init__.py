"""What the hardware counters say about a device: means over its window, its work, its gaps, ranges and kernels."""
