"""Many traces: found, named, each reported in a process of its own, and summed up together. A bad one fails alone."""
