"""Which kind of trouble a device is in."""
