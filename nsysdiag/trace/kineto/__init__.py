"""Traces of the PyTorch profiler: JSON of Kineto, which becomes the tables of an nsys export."""
