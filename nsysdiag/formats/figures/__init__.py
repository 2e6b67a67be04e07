"""The charts of the page as plotly figures, for a notebook. Nothing here knows a subject."""
