"""What the GPU's hardware counters say."""
