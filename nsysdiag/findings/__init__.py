"""What is worth repairing: each cause at the place where it costs most."""
