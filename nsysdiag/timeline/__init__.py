"""The timeline of a device: levels of detail, and the exact lanes."""
