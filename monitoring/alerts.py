"""Evaluates alert rules, stores incidents, and notifies operators once of each."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import structlog
from bson import ObjectId
from django.conf import settings
from pymongo.errors import ServerSelectionTimeoutError

from access.models import StaffUser
from domain.channels import ROOM, Channel
from notifications import staff_messages
from notifications.staff_messages import StaffAddress
from recipients import queries as recipients
from rooms import registry as rooms

from . import alert_rules, incidents
from .documents import IncidentDocument
from .models import AlertKind

log = structlog.get_logger(__name__)
STALL_KINDS = frozenset({AlertKind.SWEEP_OVERDUE, AlertKind.WORK_OVERDUE})
"""Alerts that beat and workers can't raise, because these processes may have stopped."""
NOTIFY_WITHIN = timedelta(days=1)
MAX_OPERATORS = 50
NOTIFIED_ROLES = ("operator", "admin")
"""Roles whose members are notified if ALERT_RECIPIENTS is empty."""
DEFAULT_ROOM = "alerts"
"""The room that gets alerts if ALERT_ROOM is empty, and there is one with this ID."""


def evaluate(*, now: datetime) -> int:
    """Evaluate all enabled rules. Return the number of violations. Safe to run concurrently."""
    return _evaluate(alert_rules.enabled_rules(), now)


def evaluate_stalled(*, now: datetime) -> int:
    """Evaluate the rules for missing sweeps and overdue work, if beat or workers have stopped."""
    stall_rules = [rule for rule in alert_rules.enabled_rules() if rule.kind in STALL_KINDS]
    return _evaluate(stall_rules, now, resolve=False)


def _evaluate(rules: list[alert_rules.Rule], now: datetime, *, resolve: bool = True) -> int:
    findings: list[incidents.Finding] = []
    unjudged: set[ObjectId] = set()
    for rule in rules:
        try:
            findings += alert_rules.detect(rule, now=now)
        except ServerSelectionTimeoutError:
            # The others would wait as long for MongoDB.
            raise
        except Exception:
            # Whatever it is must not silence the other rules.
            log.exception("alert_rule_failed", rule=str(rule.id), kind=rule.kind.value)
            unjudged.add(rule.id)
    for finding in findings:
        if (opened := incidents.record(finding, now=now)) is not None:
            log.critical(
                "alert_opened",
                incident=str(opened["_id"]),
                kind=finding.kind.value,
                title=finding.title,
            )
    active_keys = {finding.key for finding in findings}
    if resolve:
        for resolved in incidents.resolve_others(active_keys, unjudged=unjudged, now=now):
            log.warning("alert_resolved", incident=str(resolved["_id"]), kind=resolved["kind"])
    for incident in incidents.unnotified(since=now - NOTIFY_WITHIN):
        notify_operators(incident, now=now)
    return len(active_keys)


def notify_operators(incident: IncidentDocument, *, now: datetime) -> None:
    """Notify operators that an incident opened or, once it is over, was resolved."""
    is_resolved = not incident["is_open"]
    all_operators, room = operators(), alert_room()
    if not all_operators and room is None:
        log.error("alert_has_no_recipients", incident=str(incident["_id"]))
    notified = [
        _notify_operator(operator, incident, is_resolved, now) for operator in all_operators
    ]
    if room is not None:
        notified.append(_notify(StaffAddress(room=room), incident, is_resolved, now, [ROOM]))
    if any(notified) or not notified:
        incidents.mark_notified(incident["_id"], "notified_open_at", now=now)
        if is_resolved:
            incidents.mark_notified(incident["_id"], "notified_resolved_at", now=now)


def operators() -> list[StaffAddress]:
    """Return the addresses of ALERT_RECIPIENTS or, without any, of the active staff who care.

    They are superusers and those in NOTIFIED_ROLES, at most MAX_OPERATORS.
    """
    named = settings.ALERT_RECIPIENTS[:MAX_OPERATORS]
    if not named:
        active = StaffUser.objects.filter(is_active=True)
        found = {user.pk: user for user in active.filter(groups__name__in=NOTIFIED_ROLES)}
        found |= {user.pk: user for user in active.filter(is_superuser=True)}
        return [
            staff_messages.address_of(user.get_username(), user.email)
            for user in list(found.values())[:MAX_OPERATORS]
        ]
    registered = recipients.find_registered(name for name in named if "@" not in name)
    return [
        StaffAddress(email=name)
        if "@" in name
        else StaffAddress(
            user_id=name, email=registered[name].email if name in registered else None
        )
        for name in named
    ]


def alert_room() -> str | None:
    """Return the room that gets alerts, if there is one and it is enabled."""
    room = settings.ALERT_ROOM or DEFAULT_ROOM
    return room if rooms.takes_messages(room) else None


def _notify_operator(
    operator: StaffAddress, incident: IncidentDocument, is_resolved: bool, now: datetime
) -> bool:
    channels = _channels(operator, incident)
    return bool(channels) and _notify(operator, incident, is_resolved, now, channels)


def _notify(
    operator: StaffAddress,
    incident: IncidentDocument,
    is_resolved: bool,
    now: datetime,
    channels: Sequence[Channel],
) -> bool:
    reason = staff_messages.send(
        operator,
        subject=f"{'Resolved' if is_resolved else 'Alert'}: {incident['title']}",
        body=_body(incident, is_resolved),
        key=f"alert:{incident['_id']}:{'over' if is_resolved else 'open'}",
        channels=channels,
        now=now,
    )
    if reason is not None:
        log.critical("alert_not_sent", incident=str(incident["_id"]), reason=reason)
    return reason is None


def _channels(operator: StaffAddress, incident: IncidentDocument) -> list[Channel]:
    """Return an operator's channels, without the broken one unless there is no other."""
    possible = staff_messages.possible_channels(operator)
    return [
        channel for channel in possible if channel != incident.get("broken_channel")
    ] or possible


def _body(incident: IncidentDocument, is_resolved: bool) -> str:
    lines = [incident["detail"], f"Opened: {incident['opened_at']:%Y-%m-%d %H:%M} UTC."]
    if is_resolved:
        lines.append(f"Resolved: {incident['resolved_at']:%Y-%m-%d %H:%M} UTC.")
    lines.append(f"{settings.PUBLIC_URL}/admin/analytics/incident/{incident['_id']}/change/")
    return "\n\n".join(lines)
