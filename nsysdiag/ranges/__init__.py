"""The time of a device by NVTX range: a tree of paths in which each nanosecond of the window is in one."""
