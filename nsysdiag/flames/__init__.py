"""Flame graphs: idle time by cause, range and call chain, and the work that the host waits for."""
