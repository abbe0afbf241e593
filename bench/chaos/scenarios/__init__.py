"""Every scenario, by its number."""

from ..findings import Scenario
from . import (
    backup,
    beats,
    broker,
    campaign,
    clocks,
    crashes,
    failover,
    operators,
    providers,
    receipts,
    restarts,
    workers,
)

_ALL = (
    crashes.EVERY_BOUNDARY,
    workers.KILLED_WORKERS,
    restarts.KILLED_API,
    beats.BEAT_KILLED,
    beats.MANY_SWEEPERS,
    restarts.ROLLING_RESTARTS,
    workers.FROZEN_WORKERS,
    broker.LOST_BROKER,
    broker.REPEATED_WAKEUPS,
    failover.LOST_PRIMARIES,
    failover.FAILING_COMMANDS,
    providers.SILENT_PROVIDER,
    providers.MIXED_ERRORS,
    providers.BAD_CREDENTIALS,
    providers.SPOILED_ANSWERS,
    receipts.DISORDERED_RECEIPTS,
    clocks.WRONG_CLOCKS,
    operators.RACING_PEOPLE,
    campaign.CODES_BEHIND_A_CAMPAIGN,
    backup.RESTORED_BACKUP,
)
SCENARIOS: dict[int, Scenario] = {one.number: one for one in _ALL}
