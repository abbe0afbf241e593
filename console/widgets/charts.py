"""Small bar charts in tables."""

from collections.abc import Sequence

CHART_SIZE = (96, 24)  # Width and height in pixels
Bar = tuple[int, int, int]
"""Left edge, top, and height."""


def stacked_bars(*series: Sequence[int]) -> list[list[Bar]]:
    """Return the bars of each series, stacked in the order of the series.

    A count other than zero is at least one pixel high.
    """
    width, height = CHART_SIZE
    totals = [sum(counts) for counts in zip(*series, strict=True)]
    highest, step = max(totals, default=0) or 1, width // len(totals)
    tops, charts = [height] * len(totals), []
    for counts in series:
        bars = []
        for number, count in enumerate(counts):
            size = min(max(round(count * height / highest), 1 if count else 0), tops[number])
            tops[number] -= size
            bars.append((number * step, tops[number], size))
        charts.append(bars)
    return charts
