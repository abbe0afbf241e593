"""Every scenario, by its number."""

from ..scenario import Scenario
from . import beats, broker, crashes, frozen, hints, killing, operators, restarts, silence

_ALL = (
    crashes.EVERY_BOUNDARY,
    killing.KILLED_WORKERS,
    restarts.KILLED_API,
    beats.BEAT_KILLED,
    beats.MANY_SWEEPERS,
    restarts.ROLLING_RESTARTS,
    frozen.FROZEN_WORKERS,
    broker.LOST_BROKER,
    hints.REPEATED_HINTS,
    silence.SILENT_PROVIDER,
    operators.RACING_PEOPLE,
)
SCENARIOS: dict[int, Scenario] = {one.number: one for one in _ALL}
