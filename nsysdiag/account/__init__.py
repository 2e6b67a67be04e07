"""Every nanosecond of a device's time counted to one bottleneck."""
