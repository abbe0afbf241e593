"""Every scenario, by its number."""

from ..scenario import Scenario
from . import (
    answers,
    backup,
    beats,
    broker,
    campaign,
    clocks,
    crashes,
    credentials,
    failover,
    frozen,
    hints,
    killing,
    operators,
    reports,
    restarts,
    silence,
)

_ALL = (
    crashes.EVERY_BOUNDARY,
    killing.KILLED_WORKERS,
    restarts.KILLED_API,
    beats.BEAT_KILLED,
    beats.MANY_SWEEPERS,
    restarts.ROLLING_RESTARTS,
    frozen.FROZEN_WORKERS,
    broker.LOST_BROKER,
    hints.REPEATED_WAKEUPS,
    failover.LOST_PRIMARIES,
    failover.FAILING_COMMANDS,
    silence.SILENT_PROVIDER,
    answers.MIXED_ERRORS,
    credentials.BAD_CREDENTIALS,
    answers.SPOILED_ANSWERS,
    reports.DISORDERED_RECEIPTS,
    clocks.WRONG_CLOCKS,
    operators.RACING_PEOPLE,
    campaign.CODES_BEHIND_A_CAMPAIGN,
    backup.RESTORED_BACKUP,
)
SCENARIOS: dict[int, Scenario] = {one.number: one for one in _ALL}
