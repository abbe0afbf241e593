"""The simulation of people: a few people at each change of the clock."""

from datetime import timedelta

import pytest

from bench.simulation.engine import Settings, simulate
from bench.simulation.report import table

pytestmark = pytest.mark.usefixtures("db", "broker")


@pytest.mark.slow
def test_invariants_hold_while_processes_are_killed_between_writes() -> None:
    settings = Settings(
        seed=1,
        people=10,
        days=10,
        events_per_week=5.0,
        step=timedelta(hours=8),
        fault_rate=0.7,
    )
    outcome = simulate(settings)
    assert not outcome.violations, table([outcome])
    assert outcome.kills > 10
    assert outcome.faults["applied, response lost"] > 0
    assert outcome.counts["accepted"] > 30
    assert outcome.counts["held by limits"] > 0
    assert outcome.counts["code not_needed"] > 0
    assert outcome.counts["merged"] > 0
