"""Line charts as SVG, one panel below another. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, PANEL_HEIGHT, MARGIN = 860, 190, 48
PLOT_WIDTH, PLOT_HEIGHT = WIDTH - 2 * MARGIN, PANEL_HEIGHT - 70
TICKS, TICK_SECONDS = 6, 5
"""The most labels of the axis, and the seconds of which their distance is a multiple."""
STYLE = "font-family:system-ui,sans-serif;font-size:12px;fill:#334155"


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of points (x, y), of which x is in seconds."""

    label: str
    color: str
    points: Sequence[tuple[float, float]]
    is_dashed: bool = False


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A chart with a title."""

    title: str
    lines: Sequence[Line]


def render(panels: Sequence[Panel], *, caption: str) -> str:
    """Return the SVG document."""
    height = PANEL_HEIGHT * len(panels) + 28
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    parts = [_panel(panel, top=PANEL_HEIGHT * index) for index, panel in enumerate(panels)]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" style="{STYLE}">',
            f"<title>{escape(caption)}</title>",
            '<rect width="100%" height="100%" fill="#ffffff"/>',
            *parts,
            f'<text x="{MARGIN}" y="{height - 10}">{escape(caption)}</text>',
            "</svg>\n",
        ]
    )


def _panel(panel: Panel, *, top: int) -> str:
    points = [point for line in panel.lines for point in line.points]
    x_end = max((x for x, _ in points), default=0) or 1
    y_end = max((y for _, y in points), default=0) or 1
    bottom = top + 44 + PLOT_HEIGHT
    axis = f"M{MARGIN},{bottom - PLOT_HEIGHT} V{bottom} H{MARGIN + PLOT_WIDTH}"
    parts = [
        f'<text x="{MARGIN}" y="{top + 18}" font-weight="600">{escape(panel.title)}</text>',
        f'<path d="{axis}" fill="none" stroke="#94a3b8"/>',
        _text(MARGIN - 6, bottom - PLOT_HEIGHT + 4, f"{y_end:,.0f}", anchor="end"),
        _text(MARGIN - 6, bottom + 4, "0", anchor="end"),
    ]
    step = max(math.ceil(x_end / TICKS / TICK_SECONDS) * TICK_SECONDS, TICK_SECONDS)
    for second in range(0, math.floor(x_end) + 1, step):
        x = MARGIN + PLOT_WIDTH * second / x_end
        parts.append(_text(x, bottom + 16, f"{second} s", anchor="middle"))
    left = MARGIN
    for line in panel.lines:
        dash = ' stroke-dasharray="5 4"' if line.is_dashed else ""
        path = " ".join(
            f"{MARGIN + PLOT_WIDTH * x / x_end:.1f},{bottom - PLOT_HEIGHT * y / y_end:.1f}"
            for x, y in line.points
        )
        parts += [
            f'<polyline points="{path}" fill="none" stroke="{line.color}"{dash}/>',
            f'<path d="M{left},{top + 32} h16" stroke="{line.color}" stroke-width="2"{dash}/>',
            _text(left + 22, top + 36, line.label),
        ]
        left += 44 + 7 * len(line.label)
    return "\n".join(parts)


def _text(x: float, y: float, text: str, *, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y}" text-anchor="{anchor}">{escape(text)}</text>'
