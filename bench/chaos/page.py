"""The committed table of results: a row for each scenario, replaced when it runs again."""

import os
import platform
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .scenarios import SCENARIOS

HEAD = """\
| | injected | with | shows | accepted | lost | double | after unknown | illegal | measured | met |
|---|---|---|---|---|---|---|---|---|---|---|
"""
_ROW = re.compile(r"^\| (\d+)(?:, providers take (\d+) ms)? \|.*\|$", re.MULTILINE)


def update(path: Path, results: Mapping[int, Mapping[str, Any]], *, latency: int = 0) -> None:
    """Replace or add the rows of these scenarios in the page's table of results.

    Runs with a provider that takes ``latency`` milliseconds have rows of their own.
    """
    text = path.read_text() if path.exists() else ""
    before, _, table = text.partition(HEAD)
    rows = dict(zip(runs(text), (row[0] for row in _ROW.finditer(table)), strict=True))
    rows |= {(number, latency): _row(number, result, latency) for number, result in results.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(before + HEAD + "\n".join(rows[key] for key in sorted(rows)) + "\n")


def runs(text: str) -> list[tuple[int, int]]:
    """Return the scenario and latency of each row of a page's table, in its order."""
    table = text.partition(HEAD)[2]
    return [(int(match[1]), int(match[2] or 0)) for match in _ROW.finditer(table)]


def _row(number: int, result: Mapping[str, Any], latency: int) -> str:
    scenario = SCENARIOS[number]
    given = result.get("sizes", {}).items()
    sizes = [(name, size) for name, size in given if isinstance(size, int | float)]
    figures = result.get("figures", {})
    measured = [f"{name}: {_figure(value)}" for name, value in figures.items()]
    day = datetime.now(UTC).date().isoformat()
    machine = f"{day}, {os.cpu_count()} cores, Python {platform.python_version()}"
    counted = ("acknowledged", "lost", "double", "double_unknown", "illegal")
    cells = [
        f"{number}, providers take {latency} ms" if latency else str(number),
        scenario.injects,
        ", ".join(f"{name.replace('_', ' ')} {_figure(size)}" for name, size in sizes),
        scenario.shows,
        *(_figure(result.get(name)) for name in counted),
        "; ".join([*measured, machine]),
        "yes" if result["met"] else "**no**",
    ]
    return f"| {' | '.join(cells)} |"


def _figure(value: float | None) -> str:
    if value is None:
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.1f}" if abs(value) >= 1 else f"{value:.2g}"
