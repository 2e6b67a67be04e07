"""Who ended a wait, and what that thread did meanwhile: wait chains followed to their root."""
