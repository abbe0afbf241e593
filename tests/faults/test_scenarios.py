"""The list of scenarios, and the table of their results."""

import inspect
from pathlib import Path

from bench.chaos import page
from bench.chaos.findings import Scenario
from bench.chaos.scenarios import SCENARIOS
from tests.support.tables import each_case

FOUND = {
    "acknowledged": 10_000,
    "lost": 0,
    "double": 0,
    "double_unknown": 3,
    "illegal": 0,
    "figures": {"seconds until all was sent": 61.25},
    "met": True,
}


@each_case("scenario", SCENARIOS.values())
def test_scenario_has_sizes_for_every_parameter(scenario: Scenario) -> None:
    wanted = set(inspect.signature(scenario.run).parameters)
    assert set(scenario.full) == set(scenario.short) == wanted


def test_result_row_is_inserted_in_order_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "results.md"
    path.write_text("| 7 | a row of another table |\n")
    page.update(path, {9: FOUND})
    page.update(path, {2: FOUND})
    page.update(path, {9: {**FOUND, "lost": 1, "met": False}})
    assert path.read_text().startswith("| 7 | a row of another table |\n" + page.HEAD)
    rows = [line for line in path.read_text().splitlines() if line[:3] in ("| 2", "| 9")]
    assert [row.split("|")[1].strip() for row in rows] == ["2", "9"]
    assert "| 10,000 | 0 | 0 | 3 | 0 |" in rows[0]
    assert "seconds until all was sent: 61.2" in rows[0]
    assert rows[0].endswith("| yes |")
    assert rows[1].endswith("| **no** |")


def test_committed_results_are_known_scenarios_and_met() -> None:
    committed = Path(page.__file__).parents[2] / "docs" / "reference" / "fault_injection.md"
    text = committed.read_text()
    rows = page.runs(text)
    assert rows == sorted(set(rows))
    assert {number for number, _ in rows} <= set(SCENARIOS)
    assert text.count("| yes |") == len(rows)
