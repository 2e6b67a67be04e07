"""Sections that the page draws with templates of their own."""
