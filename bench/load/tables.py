"""Percentiles of waits, and Markdown tables. Pure."""

import math
from collections.abc import Sequence


def percentile_of(values: Sequence[float], percent: float) -> float:
    """Return the smallest value that ``percent`` of the values don't exceed; infinite if none."""
    ordered = sorted(values)
    if not ordered:
        return math.inf
    return ordered[max(math.ceil(len(ordered) * percent / 100) - 1, 0)]


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table whose columns after the first are aligned to the right."""
    lines = [headings, ["---", *["---:"] * (len(headings) - 1)], *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"
