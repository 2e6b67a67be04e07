"""Kernels by name and by launch shape."""
