"""Evaluates alert rules, stores incidents, and notifies operators once of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from bson import ObjectId
from django.conf import settings
from pymongo.errors import ServerSelectionTimeoutError

from access.clients import registry
from access.models import StaffUser
from devices import queries as devices
from domain.addresses import EMAIL_ADDRESS
from domain.channels import INBOX, PUSH, ROOM, Channel, channels_of
from notifications import validation
from notifications.intake import acceptance, requests
from recipients import queries as recipients
from rooms import registry as rooms

from . import alert_rules, incidents
from .alert_rules import ALERT_TYPE
from .documents import IncidentDocument
from .models import AlertKind

log = structlog.get_logger(__name__)
STALL_KINDS = frozenset({AlertKind.SWEEP_OVERDUE, AlertKind.WORK_OVERDUE})
"""Alerts that beat and workers can't raise, because these processes may have stopped."""
NOTIFY_WITHIN = timedelta(days=1)
MAX_OPERATORS = 50
NOTIFIED_ROLES = ("operator", "admin")
"""Roles whose members are notified if ALERT_RECIPIENTS is empty."""
STAFF_PREFIX = "staff:"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """A person to notify of incidents."""

    user_id: str | None = None
    """User ID of a staff user or recipient, who can be reached in-app and by push."""
    email: str | None = None
    room: str | None = None
    """ID of a room, in place of a person."""

    @property
    def key(self) -> str:
        """The end of the idempotency key. No user ID makes that of a room."""
        return f"/{self.room}" if self.room else f":{self.user_id or self.email}"


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
        notified.append(_notify(Operator(room=room), incident, is_resolved, now, [ROOM]))
    if any(notified) or not notified:
        incidents.mark_notified(incident["_id"], "notified_open_at", now=now)
        if is_resolved:
            incidents.mark_notified(incident["_id"], "notified_resolved_at", now=now)


def operators() -> list[Operator]:
    """Return the people in ALERT_RECIPIENTS or, if it is empty, the staff in NOTIFIED_ROLES."""
    named = settings.ALERT_RECIPIENTS[:MAX_OPERATORS]
    if not named:
        active = StaffUser.objects.filter(is_active=True)
        found = {user.pk: user for user in active.filter(groups__name__in=NOTIFIED_ROLES)}
        found |= {user.pk: user for user in active.filter(is_superuser=True)}
        return [
            Operator(user_id=f"{STAFF_PREFIX}{user.get_username()}", email=user.email or None)
            for user in list(found.values())[:MAX_OPERATORS]
        ]
    registered = recipients.find_registered(name for name in named if "@" not in name)
    return [
        Operator(email=name)
        if "@" in name
        else Operator(user_id=name, email=registered[name].email if name in registered else None)
        for name in named
    ]


def alert_room() -> str | None:
    """Return the room that gets alerts, if there is one and it is enabled."""
    room = settings.ALERT_ROOM or DEFAULT_ROOM
    return room if rooms.takes_messages(room) else None


def _notify_operator(
    operator: Operator, incident: IncidentDocument, is_resolved: bool, now: datetime
) -> bool:
    channels = _channels(operator, incident)
    return bool(channels) and _notify(operator, incident, is_resolved, now, channels)


def _notify(
    operator: Operator,
    incident: IncidentDocument,
    is_resolved: bool,
    now: datetime,
    channels: Sequence[Channel],
) -> bool:
    request = requests.NotificationRequest(
        type=ALERT_TYPE,
        user_id=operator.user_id,
        recipient=requests.NotificationRecipientRequest(email=operator.email, room=operator.room),
        channels=[channel.value for channel in channels],
        content=requests.ContentRequest(
            subject=f"{'Resolved' if is_resolved else 'Alert'}: {incident['title']}"[:255],
            body=_body(incident, is_resolved),
        ),
    )
    caller = requests.Caller(
        client_id=registry.system_client_id(now=now),
        may_send_critical=True,
        idempotency_key=f"alert:{incident['_id']}:"
        f"{'over' if is_resolved else 'open'}{operator.key}",
    )
    try:
        acceptance.accept(request, caller=caller, now=now)
    except requests.KeyReusedError:
        # Notified before, with other details of the incident.
        return True
    except (validation.InvalidRequestError, requests.AlreadyNotifiedError) as error:
        reason = type(error).__name__
        log.critical("alert_not_sent", incident=str(incident["_id"]), reason=reason)
        return False
    return True


def _channels(operator: Operator, incident: IncidentDocument) -> list[Channel]:
    """Return an operator's channels, without the broken one unless there is no other."""
    possible: list[Channel] = []
    if operator.email:
        possible += channels_of(EMAIL_ADDRESS)
    if operator.user_id:
        possible.append(INBOX)
        if devices.find_push_targets(user_ids=[operator.user_id]).by_user:
            possible.append(PUSH)
    return [
        channel for channel in possible if channel != incident.get("broken_channel")
    ] or possible


def _body(incident: IncidentDocument, is_resolved: bool) -> str:
    lines = [incident["detail"], f"Opened: {incident['opened_at']:%Y-%m-%d %H:%M} UTC."]
    if is_resolved:
        lines.append(f"Resolved: {incident['resolved_at']:%Y-%m-%d %H:%M} UTC.")
    lines.append(f"{settings.PUBLIC_URL}/admin/analytics/incident/{incident['_id']}/change/")
    return "\n\n".join(lines)
