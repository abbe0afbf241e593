"""The page of the speed results: each goal in every run, the worst value, and the runs."""

import json
from pathlib import Path

import pytest

from bench import results
from bench.figures import Figure, Measure, at_least, at_most
from bench.results import Run, page, record_run


def _run(rate: float, ratio: float, *, latency: float = 20.0) -> Run:
    figures = [
        Figure(
            key="S1",
            label="drain",
            unit="/s",
            ours=rate,
            peer=rate / ratio,
            ratio_peer=ratio,
            goals=(at_least(500), at_least(1.0, Measure.PEER)),
        ),
        Figure(key="S7", label="latency", unit="ms", ours=latency, goals=(at_most(50),)),
    ]
    return Run(
        measured_at="2026-01-02 03:04", command="bench all", machine="2 cores", figures=figures
    )


def _cells(text: str, key: str, goal: str) -> list[str]:
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    (found,) = [row for row in rows if row[:2] == [key, goal]]
    return found[2:]


def test_each_goal_has_the_value_of_every_run_and_the_worst() -> None:
    text = page([_run(700, 1.25), _run(480, 1.5, latency=60)])
    assert _cells(text, "S1", "≥ 500") == ["700", "480", "480", "1 of 2"]
    assert _cells(text, "S1", "≥ 1 x post_office") == ["1.25", "1.5", "1.25", "2 of 2"]
    assert _cells(text, "S7", "≤ 50") == ["20", "60", "60", "1 of 2"]


def test_a_run_without_a_figure_has_an_empty_cell() -> None:
    whole = _run(700, 1.25)
    part = Run(**{**vars(whole), "figures": whole.figures[:1]})
    assert _cells(page([part, whole]), "S7", "≤ 50") == ["", "20", "20", "1 of 1"]


def test_each_run_has_its_command_and_all_figures() -> None:
    text = page([_run(700, 1.25), _run(480, 1.5)])
    assert text.count("`bench all`, 2026-01-02 03:04 UTC. 2 cores.") == 2
    assert "## Run 2" in text
    assert "NOT MET" in text


def test_a_recorded_run_joins_the_earlier_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "RESULTS", tmp_path)
    runs = [_run(700, 1.25), _run(480, 1.5)]
    for run in runs:
        record_run(run)
    assert (tmp_path / "speed.md").read_text() == page(runs)
    assert len(json.loads((tmp_path / "speed.json").read_text())) == 2
