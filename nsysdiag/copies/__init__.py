"""Copies: how many, how fast, and what keeps them from being hidden."""
