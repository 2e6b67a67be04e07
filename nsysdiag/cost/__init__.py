"""What lost time costs at a price for an hour of the GPU."""
