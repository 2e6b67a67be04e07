"""The charts of the page as plotly figures: plain data that a script in the page draws in place of the still ones.

Colours of the theme are written as `var(--name)` and looked up when a figure is drawn.
"""
