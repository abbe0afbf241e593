"""Look at every rule; open, go on with and end incidents; tell operators of each once."""

from datetime import datetime, timedelta

import structlog

from analytics import incidents
from analytics.incidents import Finding
from analytics.models import AlertKind

from . import rules, watching
from .telling import tell

log = structlog.get_logger(__name__)

STANDSTILL = frozenset({AlertKind.SWEEP_OVERDUE, AlertKind.WORK_OVERDUE})
"""What beat and workers cannot raise, as it is they that stand still."""
TOLD_WITHIN = timedelta(days=1)
"""Nobody is told of an older incident."""


def evaluate(*, now: datetime) -> int:
    """Look at every rule that is switched on; return how many incidents are open.

    Any number may do so at once: an incident is opened, ended and told of once.
    """
    return _evaluate(rules.enabled(), now)


def evaluate_standstill(*, now: datetime) -> int:
    """Look at the rules that others than beat must look at: sweeps, and work that waits."""
    return _evaluate([rule for rule in rules.enabled() if rule.kind in STANDSTILL], now, end=False)


def _evaluate(looked_at: list[rules.Rule], now: datetime, *, end: bool = True) -> int:
    found = [finding for rule in looked_at for finding in watching.findings(rule, now=now)]
    for finding in found:
        _note(finding, now)
    going_on = {finding.key for finding in found}
    if end:
        for over in incidents.resolve_others(going_on, now=now):
            log.warning("alert_resolved", incident=str(over["_id"]), kind=over["kind"])
    for incident in incidents.unnotified(since=now - TOLD_WITHIN):
        tell(incident, now=now)
    return len(going_on)


def _note(finding: Finding, now: datetime) -> None:
    opened = incidents.record(finding, now=now)
    if opened is not None:
        log.critical(
            "alert_opened",
            incident=str(opened["_id"]),
            kind=finding.kind.value,
            title=finding.title,
        )
