"""The diagnosis: the bottleneck of a job and its devices, and what the trace does not show."""
