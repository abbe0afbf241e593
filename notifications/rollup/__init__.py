"""Figures over time, counted from notifications and attempts, minute by minute.

Nothing is counted where notifications are accepted or sent. A task each minute finds what has
changed, by the index on the time of the last change, counts the minutes it belongs to from the
beginning, and sums them up. docs/metrics.md says what each figure is.
"""

from .running import Report, rebuild, run

__all__ = ["Report", "rebuild", "run"]
