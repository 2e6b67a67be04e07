"""What leaves the machine: names replaced, slices of traces, bundles for a ticket."""
