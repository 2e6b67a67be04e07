"""Device memory over time, and unified memory."""
