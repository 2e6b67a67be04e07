"""The time of a device by NVTX range."""
