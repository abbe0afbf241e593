"""The list of scenarios, and their committed results."""

import inspect
from pathlib import Path

from bench.chaos import page
from bench.chaos.findings import Scenario
from bench.chaos.scenarios import SCENARIOS
from tests.support.tables import each_case


@each_case("scenario", SCENARIOS.values())
def test_scenario_has_sizes_for_every_parameter(scenario: Scenario) -> None:
    wanted = set(inspect.signature(scenario.run).parameters)
    assert set(scenario.full) == set(scenario.short) == wanted


def test_committed_results_are_known_scenarios_and_met() -> None:
    committed = Path(page.__file__).parents[2] / "docs" / "reference" / "fault_injection.md"
    text = committed.read_text()
    rows = page.runs(text)
    assert rows == sorted(set(rows))
    assert {number for number, _ in rows} <= set(SCENARIOS)
    assert text.count("| yes |") == len(rows)
