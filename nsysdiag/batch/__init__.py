"""Many traces: found, named, each reported in a process of its own, and told of together. A bad one fails alone."""
