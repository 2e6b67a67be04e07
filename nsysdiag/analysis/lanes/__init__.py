"""The timeline of a device: levels of detail for all of it, and every slice where there is room for them."""
