"""Every nanosecond of a device's time charged to one bottleneck."""
