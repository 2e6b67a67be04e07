"""What the trace says happened: operations of devices, calls and waits of threads, NVTX ranges, samples, counters."""
