"""Bulk operations in words, for the people who decide about them. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from domain.states import BulkAction, BulkOutcome, BulkStage
from notifications.bulk.operation import Operation
from notifications.bulk.runner import NO_DELIVERY, PREVIEW_CAP
from notifications.resend.risk import RiskKind

from ..notifications.summary import duration
from ..widgets.labels import code_label


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionLabels:
    """An action, and who may have it done."""

    verb: str
    done: str
    consequence: str
    permission: str
    is_for_failures: bool = False
    """It is offered for a list of failures."""
    is_for_waiting: bool = False
    """It is offered for lists that hold what has not been sent."""


ACTIONS: Mapping[BulkAction, ActionLabels] = {
    BulkAction.RETRY: ActionLabels(
        verb="Retry",
        done="retried",
        consequence="What failed is tried again, on the same notifications.",
        permission="notifications.retry_notification",
        is_for_failures=True,
    ),
    BulkAction.RESEND: ActionLabels(
        verb="Resend",
        done="resent",
        consequence="New notifications that say the same are sent, each linked to its original.",
        permission="notifications.resend_notification",
        is_for_failures=True,
    ),
    BulkAction.CANCEL: ActionLabels(
        verb="Cancel",
        done="cancelled",
        consequence="What has not been sent is withdrawn for good. What is on its way goes out.",
        permission="notifications.cancel_notification",
        is_for_waiting=True,
    ),
    BulkAction.RESCHEDULE: ActionLabels(
        verb="Reschedule",
        done="rescheduled",
        consequence="What has not been tried is sent at another time.",
        permission="notifications.reschedule_notification",
        is_for_waiting=True,
    ),
    BulkAction.RUN_NOW: ActionLabels(
        verb="Run now",
        done="brought forward",
        consequence="What waits for its time, or for another try, is sent now.",
        permission="notifications.reschedule_notification",
        is_for_waiting=True,
    ),
}
STAGES: Mapping[BulkStage, tuple[str, str]] = {
    BulkStage.PREVIEWING: ("Previewing", "info"),
    BulkStage.READY: ("Ready to start", "warning"),
    BulkStage.RUNNING: ("Running", "info"),
    BulkStage.PAUSED: ("Paused", "warning"),
    BulkStage.CANCELLED: ("Cancelled", "calm"),
    BulkStage.COMPLETED: ("Completed", "success"),
}
"""Each stage in words, and its colour."""
RISK_MEANINGS: Mapping[RiskKind, str] = {
    RiskKind.SAFE: "The person does not have it, and nothing is known that keeps it from arriving.",
    RiskKind.MAY_DUPLICATE: "The person may have it already: this could be a second copy.",
    RiskKind.WILL_FAIL_AGAIN: "It fails the same way, as long as the cause is still there.",
    RiskKind.EXPIRED: "It would come too late. A resend begins its time anew; a retry is refused.",
    RiskKind.SUPPRESSED: (
        "They do not want it, or their address is known to be bad: always left out."
    ),
}
REASON_LABELS: Mapping[str, str] = {
    "changed": "had changed since the preview",
    "gone": "were not there any more",
    "refused": "could not be done",
    **{kind.value: f"left out: {code_label(kind).lower()}" for kind in RiskKind},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far an operation has come."""

    value: int
    maximum: int | None
    """None as long as nobody knows how much there is."""
    summary: str


def progress(operation: Operation, *, now: datetime) -> Progress:
    """Return how far an operation has come, in a picture and a sentence."""
    if operation.stage in (BulkStage.PREVIEWING, BulkStage.READY):
        return Progress(
            value=operation.found_count, maximum=None, summary=preview_summary(operation)
        )
    done = operation.settled_count
    if operation.is_capped and operation.stage is not BulkStage.COMPLETED:
        text = f"{done:,} so far, of more than {_deliveries(operation.delivery_count)}."
        return Progress(value=done, maximum=None, summary=text)
    maximum = max(operation.delivery_count, done)
    text = f"{done:,} of {_deliveries(maximum)}{_time_left(operation, maximum, now)}."
    return Progress(value=done, maximum=max(maximum, 1), summary=text)


def preview_summary(operation: Operation) -> str:
    """Return what a preview has found, honest about what it has not looked at."""
    count = f"{operation.found_count:,}"
    if operation.stage is BulkStage.PREVIEWING:
        return f"{count} notifications looked at so far."
    if operation.is_capped:
        return (
            f"More than {PREVIEW_CAP:,} notifications. The verdicts below are those of the oldest "
            f"{count}; each of the others is judged when its turn comes."
        )
    unaffected = operation.preview_counts.get(NO_DELIVERY, 0)
    plural = "" if operation.found_count == 1 else "s"
    unaffected_text = (
        f" In {unaffected:,} of them there is nothing to be done." if unaffected else ""
    )
    return (
        f"{count} notification{plural}, {_deliveries(operation.delivery_count)}.{unaffected_text}"
    )


def outcomes(operation: Operation) -> list[tuple[str, str, int]]:
    """Return what became of the deliveries: a label, a colour and a number each."""
    labels = (
        (BulkOutcome.DONE, ACTIONS[operation.action].done.capitalize(), "success"),
        (BulkOutcome.SKIPPED, "Left out", "calm"),
        (BulkOutcome.FAILED, "Not possible", "danger"),
    )
    return [(label, color, operation.counts.get(outcome, 0)) for outcome, label, color in labels]


def reasons(operation: Operation) -> list[tuple[str, int]]:
    """Return why deliveries were left out or could not be done, the most frequent first."""
    counts = sorted(operation.reasons.items(), key=lambda one: -one[1])
    return [
        (REASON_LABELS.get(reason, code_label(reason).lower()), count) for reason, count in counts
    ]


def summarize(operation: Operation) -> str:
    """Return what an operation is, in one sentence without its filters."""
    verb, at = ACTIONS[operation.action].verb, operation.send_at
    to = f" to {at.day} {at:%B %Y, %H:%M} UTC" if at else ""
    list_name = next(iter(operation.selection.description), "")
    return f"{verb} {list_name.lower()}{to}"


def _deliveries(count: int) -> str:
    return "1 delivery" if count == 1 else f"{count:,} deliveries"


def _time_left(operation: Operation, maximum: int, now: datetime) -> str:
    """Return how long it will still take, once that can be told."""
    done, started_at = operation.settled_count, operation.started_at
    if (
        operation.stage is not BulkStage.RUNNING
        or not done
        or started_at is None
        or done >= maximum
    ):
        return ""
    seconds = (now - started_at).total_seconds() / done * (maximum - done)
    return f", about {duration(max(seconds, 1))} left"
