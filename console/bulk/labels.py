"""Texts about bulk operations."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString

from domain.states import OPEN, BulkAction, BulkOutcome, BulkStage, DeliveryStatus
from notifications.actions.risk import RiskKind
from notifications.bulk.operation import Operation
from notifications.bulk.runner import NO_DELIVERY, PREVIEW_CAP

from ..texts.labels import code_label
from ..texts.staff_actions import CANCEL, RESCHEDULE, RESEND, RETRY, SEND_NOW, StaffAction
from ..widgets.formats import count_of, duration, timestamp

S = DeliveryStatus
RISK_MEANINGS: Mapping[RiskKind, str] = {
    RiskKind.SAFE: "Not delivered, and no known cause for another failure.",
    RiskKind.MAY_DUPLICATE: "The recipient might have it: this might be a duplicate.",
    RiskKind.WILL_FAIL_AGAIN: "Fails the same way while the cause exists.",
    RiskKind.EXPIRED: "Too late. A resend gets a new expiry; a retry is rejected.",
    RiskKind.SUPPRESSED: "Opted out, or the address is suppressed: always skipped.",
}
REASON_LABELS: Mapping[str, str] = {
    "changed": "changed since preview",
    "gone": "deleted",
    "refused": "rejected",
    **{kind.value: f"skipped: {code_label(kind).lower()}" for kind in RiskKind},
    RiskKind.WILL_FAIL_AGAIN.value: "skipped: won't help",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionLabels:
    """The texts and the permission of an action."""

    verb: str
    done: str
    consequence: str
    permission: str
    is_for_failures: bool = False  # Available for the list of failures


def _labels(
    action: StaffAction,
    *,
    verb: str = "",
    done: str = "",
    consequence: str = "",
    is_for_failures: bool = False,
) -> ActionLabels:
    """Return the texts for many notifications. The default of each is that for one."""
    return ActionLabels(
        verb=verb or action.button,
        done=done or action.done_phrase.capitalize(),
        consequence=consequence or action.consequence,
        permission=action.permission,
        is_for_failures=is_for_failures,
    )


ACTIONS: Mapping[BulkAction, ActionLabels] = {
    BulkAction.RETRY: _labels(
        RETRY,
        verb="Retry",
        consequence="Retries the failed channels of these notifications.",
        is_for_failures=True,
    ),
    BulkAction.RESEND: _labels(
        RESEND, consequence="Sends copies as new, linked notifications.", is_for_failures=True
    ),
    BulkAction.CANCEL: _labels(CANCEL, verb="Cancel"),
    BulkAction.RESCHEDULE: _labels(RESCHEDULE),
    BulkAction.RUN_NOW: _labels(
        SEND_NOW, done="Made due", consequence="Makes pending deliveries due now."
    ),
}


def progress(operation: Operation, *, now: datetime) -> dict[str, Any]:
    """Return the text and the bar of an operation's progress. The maximum may be unknown."""
    if operation.stage in (BulkStage.PREVIEWING, BulkStage.READY):
        return {"value": operation.found_count, "summary": _preview_summary(operation)}
    done = operation.settled_count
    if operation.is_capped and operation.stage is not BulkStage.COMPLETED:
        text = f"{done:,} of more than {count_of(operation.delivery_count, 'delivery')}."
        return {"value": done, "summary": text}
    maximum = max(operation.delivery_count, done)
    text = f"{done:,} of {count_of(maximum, 'delivery')}{_time_left(operation, maximum, now)}."
    return {"value": done, "maximum": max(maximum, 1), "summary": text}


def _preview_summary(operation: Operation) -> str:
    if operation.stage is BulkStage.PREVIEWING:
        return f"{count_of(operation.found_count, 'notification')} checked so far."
    if operation.is_capped:
        return (
            f"More than {PREVIEW_CAP:,} notifications. The preview covers the oldest "
            f"{operation.found_count:,}; the others are checked before they run."
        )
    unaffected = operation.preview_counts.get(NO_DELIVERY, 0)
    note = f" {unaffected:,} without an eligible delivery." if unaffected else ""
    notifications = count_of(operation.found_count, "notification")
    return f"{notifications}, {count_of(operation.delivery_count, 'delivery')}.{note}"


def delivered(statuses: Mapping[DeliveryStatus, int]) -> list[tuple[str, str, int]]:
    """Return the label, the color and the count of what became of changed deliveries."""
    labels = (
        ("Delivered", "success", (S.DELIVERED, S.READ)),
        ("Sent, no receipt", "success", (S.SENT,)),
        ("Failed", "danger", (S.FAILED, S.EXPIRED, S.SUPPRESSED, S.CANCELLED)),
        ("Still open", "calm", tuple(OPEN)),
    )
    return [
        (label, color, sum(statuses.get(status, 0) for status in of)) for label, color, of in labels
    ]


def outcomes(operation: Operation) -> list[tuple[str, str, int]]:
    """Return the label, the color and the count of each outcome."""
    labels = (
        (BulkOutcome.DONE, "success"),
        (BulkOutcome.SKIPPED, "calm"),
        (BulkOutcome.FAILED, "danger"),
    )
    return [
        (outcome_label(operation.action, outcome), color, operation.counts.get(outcome, 0))
        for outcome, color in labels
    ]


def outcome_label(action: BulkAction, outcome: BulkOutcome) -> str:
    """Return the label of a delivery's outcome, such as "Requeued"."""
    others = {
        BulkOutcome.WAITING: "Not run",
        BulkOutcome.BEGUN: "In progress",
        BulkOutcome.SKIPPED: "Skipped",
        BulkOutcome.FAILED: "Rejected",
    }
    return others.get(outcome) or ACTIONS[action].done


def reasons(operation: Operation) -> list[tuple[str, int]]:
    """Return the reasons for skipped and rejected deliveries, the most frequent first."""
    counts = sorted(operation.reasons.items(), key=itemgetter(1), reverse=True)
    return [
        (REASON_LABELS.get(reason, code_label(reason).lower()), count) for reason, count in counts
    ]


def summarize(operation: Operation) -> SafeString:
    """Return one phrase: the action, the list, and the send time if any."""
    verb, at = ACTIONS[operation.action].verb, operation.send_at
    list_name = next(iter(operation.selection.description), "")
    to = format_html(" to {}", timestamp(at)) if at else ""
    return format_html("{} {}{}", verb, list_name.lower(), to)


def _time_left(operation: Operation, maximum: int, now: datetime) -> str:
    done, started_at = operation.settled_count, operation.started_at
    if operation.stage is not BulkStage.RUNNING or started_at is None or not 0 < done < maximum:
        return ""
    seconds = (now - started_at).total_seconds() / done * (maximum - done)
    return f", about {duration(max(seconds, 1))} left"
