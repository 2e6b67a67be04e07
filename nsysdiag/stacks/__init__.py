"""Where in the program: call stacks and CPU samples while a gap lasted."""
