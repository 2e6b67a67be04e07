"""The idle gaps of a device: their neighbours, the launch that ended each, and what this trace calls short."""
