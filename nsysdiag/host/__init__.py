"""Threads and CPUs while the devices were in use."""
