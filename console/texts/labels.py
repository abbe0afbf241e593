"""Label and color of every state: one vocabulary for all pages."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from callbacks.events import CallbackStatus
from delivery.circuit_breaker import State as CircuitState
from devices.models import Platform
from domain.channels import Channel
from domain.digests import DigestOutcome, DigestStatus
from domain.errors import FailureCode
from domain.states import (
    AttemptStatus,
    BroadcastStatus,
    BulkStage,
    DeliveryStatus,
    NotificationStatus,
)
from domain.wait_reasons import HELD, WaitReason, field, find_waits, wait_reason
from monitoring.models import AlertKind
from monitoring.provider_health import Health
from notifications.actions.risk import RiskKind
from providers import labels as provider_labels
from providers.contract import ReceiptKind

from .wait_reasons import WAIT_LABELS, Label

A, B, N, S, W = AttemptStatus, BroadcastStatus, NotificationStatus, DeliveryStatus, WaitReason


class _ChannelLabels(dict[Channel, str]):
    """Labels of channels. That of an unknown one is its name."""

    def __missing__(self, channel: Channel) -> str:
        """Return the label of a channel that another version has."""
        return channel.spec.label


CHANNELS: Mapping[Channel, str] = _ChannelLabels(
    {channel: channel.spec.label for channel in Channel}
)
STATUS_LABELS: Mapping[NotificationStatus, Label] = {
    N.CREATED: ("Scheduled or held", "calm"),
    N.QUEUED: ("Queued", "info"),
    N.PROCESSING: ("Sending or unknown", "info"),
    N.RETRYING: ("Retrying", "warning"),
    N.SENT: ("Sent", "success"),
    N.DELIVERED: ("Delivered", "success"),
    N.PARTIALLY_DELIVERED: ("Partially delivered", "warning"),
    N.FAILED: ("Failed", "danger"),
    N.EXPIRED: ("Expired", "calm"),
    N.CANCELLED: ("Cancelled", "calm"),
    N.SUPPRESSED: ("Suppressed", "calm"),
    N.MERGED: ("Sent in a digest", "success"),
}
"""Stored overall statuses, for filters and counts; :func:`notification_state` is more exact."""
DELIVERY_LABELS: Mapping[DeliveryStatus, Label] = {
    S.PENDING: ("Pending", "info"),
    S.SENDING: ("Sending", "info"),
    S.UNKNOWN: ("Unknown", "warning"),
    S.SENT: ("Sent", "success"),
    S.DELIVERED: ("Delivered", "success"),
    S.READ: ("Read", "success"),
    S.FAILED: ("Failed", "danger"),
    S.EXPIRED: ("Expired", "calm"),
    S.CANCELLED: ("Cancelled", "calm"),
    S.SUPPRESSED: ("Suppressed", "calm"),
    S.MERGED: ("In a digest", "success"),
}
"""Stored statuses of deliveries, for filters; :func:`delivery_state` is more exact."""
ATTEMPT_LABELS: Mapping[AttemptStatus, Label] = {
    A.STARTED: ("Sending", "info"),
    A.SENT: ("Sent", "success"),
    A.FAILED: ("Failed", "danger"),
    A.UNKNOWN: ("Unknown", "warning"),
    A.EXPIRED: ("Not sent", "calm"),
}
RECEIPT_LABELS: Mapping[str, Label] = {
    ReceiptKind.QUEUED: ("Queued by the provider", "calm"),
    ReceiptKind.SENT: ("Sent by the provider", "success"),
    ReceiptKind.DEFERRED: ("Deferred by the receiving server", "warning"),
    ReceiptKind.DELIVERED: ("Delivered", "success"),
    ReceiptKind.OPENED: ("Opened", "success"),
    ReceiptKind.CLICKED: ("Clicked", "success"),
    ReceiptKind.READ: ("Read", "success"),
    ReceiptKind.BOUNCED: ("Bounced", "danger"),
    ReceiptKind.BLOCKED: ("Blocked by the receiving server", "danger"),
    ReceiptKind.REJECTED: ("Dropped by the provider", "danger"),
    ReceiptKind.FAILED: ("Failed at the provider", "danger"),
    ReceiptKind.COMPLAINED: ("Spam complaint", "danger"),
    ReceiptKind.UNSUBSCRIBED: ("Unsubscribed", "warning"),
}
BROADCAST_LABELS: Mapping[BroadcastStatus, Label] = {
    B.DRAFT: ("Draft", "calm"),
    B.AWAITING_APPROVAL: ("Awaits approval", "warning"),
    B.REJECTED: ("Rejected", "danger"),
    B.EXPIRED: ("Expired", "calm"),
    B.SCHEDULED: ("Scheduled", "calm"),
    B.RUNNING: ("Running", "info"),
    B.PAUSED: ("Paused", "warning"),
    B.CANCELLING: ("Cancelling", "warning"),
    B.CANCELLED: ("Cancelled", "calm"),
    B.COMPLETED: ("Completed", "success"),
    B.FAILED: ("Failed", "danger"),
}
DIGEST_LABELS: Mapping[DigestStatus, Label] = {
    DigestStatus.OPEN: ("Open", "info"),
    DigestStatus.CLOSING: ("Closing", "info"),
    DigestStatus.SEALED: ("Closing", "info"),
    DigestStatus.CLOSED: ("Closed", "calm"),
}
OUTCOME_LABELS: Mapping[DigestOutcome, Label] = {
    DigestOutcome.SENT: ("Sent", "success"),
    DigestOutcome.SEPARATE: ("Sent one by one", "warning"),
    DigestOutcome.EMPTY: ("Empty", "calm"),
    DigestOutcome.CANCELLED: ("Cancelled", "calm"),
}
RESEND_RISKS: Mapping[RiskKind, Label] = {
    RiskKind.SAFE: ("Safe", "success"),
    RiskKind.WILL_FAIL_AGAIN: ("Won't help", "calm"),
    RiskKind.MAY_DUPLICATE: ("May duplicate", "warning"),
    RiskKind.EXPIRED: ("Expired", "calm"),
    RiskKind.SUPPRESSED: ("Suppressed", "danger"),
}
BULK_LABELS: Mapping[BulkStage, Label] = {
    BulkStage.PREVIEWING: ("Previewing", "info"),
    BulkStage.READY: ("Ready", "warning"),
    BulkStage.RUNNING: ("Running", "info"),
    BulkStage.PAUSED: ("Paused", "warning"),
    BulkStage.CANCELLED: ("Cancelled", "calm"),
    BulkStage.COMPLETED: ("Completed", "success"),
}
HEALTH_LABELS: Mapping[Health, Label] = {
    Health.PAUSED: ("Paused", "warning"),
    Health.OPEN: ("Circuit open", "danger"),
    Health.PROBING: ("Probing", "warning"),
    Health.PARTLY_OPEN: ("Degraded", "warning"),
    Health.FAILING: ("Failing", "danger"),
    Health.RATE_LIMITED: ("Rate limited", "warning"),
    Health.UNKNOWN: ("Unknown", "calm"),
    Health.HEALTHY: ("Healthy", "success"),
}
CIRCUIT_LABELS: Mapping[CircuitState, Label] = {
    CircuitState.CLOSED: ("Closed", "success"),
    CircuitState.OPEN: ("Open", "danger"),
    CircuitState.HALF_OPEN: ("Half-open", "warning"),
}
CALLBACK_LABELS: Mapping[str, Label] = {
    CallbackStatus.PENDING: ("Pending", "info"),
    CallbackStatus.DELIVERED: ("Delivered", "success"),
    CallbackStatus.FAILED: ("Failed", "danger"),
}
PLATFORM_LABELS: Mapping[Platform, str] = {
    Platform.ANDROID: "Android",
    Platform.IOS: "iOS",
    Platform.WEB: "Web",
}
SOURCE_LABELS: Mapping[str, str] = {
    **provider_labels.PROVIDERS,
    "admin": "Staff",
    "api": "API",
    "one-click": "Recipient",
}
ALERT_LABELS: Mapping[AlertKind, str] = {
    AlertKind.FAILURES: "Final failures",
    AlertKind.BREAKER_OPEN: "Circuit open",
    AlertKind.WORK_OVERDUE: "Overdue deliveries",
    AlertKind.SWEEP_OVERDUE: "Sweep overdue",
    AlertKind.ROLLUP_OVERDUE: "Roll-up overdue",
    AlertKind.PROVIDER_PAUSED: "Provider paused",
    AlertKind.CALLBACK_DISABLED: "Callback disabled",
    AlertKind.KEY_EXPIRING: "API key expires soon",
    AlertKind.DAILY_UNITS: "Daily SMS cap",
    AlertKind.PUMPING: "Inflated SMS traffic",
    AlertKind.NO_RECEIPTS: "Receipts stopped",
    AlertKind.APPROVAL_OVERRIDDEN: "Broadcast sent without an approval",
    AlertKind.EMERGENCY_CHANGE: "Type changed in an emergency",
    AlertKind.APPROVAL_STOPPED: "Broadcast held, or expired without a decision",
    AlertKind.SAVED_VIEW: "Saved view",
}


def options_of(labels: Mapping[Any, str | Label]) -> tuple[tuple[str, str], ...]:
    """Return the values and the texts of a table, for a filter or a form."""
    return tuple(
        (value.value, label if isinstance(label, str) else label[0])
        for value, label in labels.items()
    )


def notification_state(status: str, deliveries: Iterable[Any], *, now: datetime) -> Label:
    """Return a notification's label, derived from its stored status and its deliveries."""
    known, found = NotificationStatus(status), list(deliveries)
    if known is N.CREATED:
        waits = find_waits(found, now=now)
        first = next((wait for wait in waits if wait.reason is not W.STEP), None)
        if first is None:
            return WAIT_LABELS[W.STEP if waits else W.SCHEDULE]
        if first.reason not in HELD:
            return WAIT_LABELS[W.SCHEDULE]
        return ("Held", WAIT_LABELS[first.reason][1])
    if known is N.PROCESSING:
        is_unknown = any(field(delivery, "status") == S.UNKNOWN for delivery in found)
        return DELIVERY_LABELS[S.UNKNOWN if is_unknown else S.SENDING]
    return STATUS_LABELS[known]


def delivery_state(delivery: Any, *, now: datetime) -> Label:
    """Return a delivery's label. A pending delivery has the label of its wait reason."""
    status = DeliveryStatus(field(delivery, "status"))
    if status is S.PENDING:
        return WAIT_LABELS[wait_reason(delivery, now=now)]
    return DELIVERY_LABELS[status]


def broadcast_state(status: str, *, is_throttled: bool) -> Label:
    """Return a broadcast's label. It's throttled while over ``BULK_PENDING_LIMIT`` are pending."""
    known = BroadcastStatus(status)
    return (
        ("Throttled", "warning") if known is B.RUNNING and is_throttled else BROADCAST_LABELS[known]
    )


def provider_label(name: str | None) -> str | None:
    """Return a provider's label. An unknown name is returned unchanged."""
    return provider_labels.provider_name(name) if name else None


def cause_label(code: str | None) -> str:
    """Return the label of the cause of a failure."""
    return "Expired while held" if code == FailureCode.EXPIRED else code_label(code)


def code_label(code: str | None) -> str:
    """Return the label of a code: ``provider_error`` as "Provider error"."""
    return (code or "unknown").replace("_", " ").capitalize()
