"""Tests of what the GPU counters say about a device."""
