"""What a dashboard shows of a device, and what it did."""
