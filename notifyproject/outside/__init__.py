"""Going out to hosts whose names others chose, and coming back in time."""
