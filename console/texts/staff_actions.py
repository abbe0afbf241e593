"""Actions of staff on notifications: their texts, permissions, and what each applies to."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from domain.states import BulkAction, DeliveryStatus
from notifications.actions.actions import SingleAction
from notifications.actions.retries import LIFTABLE_STATUSES
from notifications.documents.notification import DeliveryDocument

S = DeliveryStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class StaffAction:
    """An action of staff on notifications."""

    name: str  # Its segment in URLs; the admin's action is ``{name}_selected``
    button: str
    question: str  # Heading of the confirmation, with a placeholder for the notifications
    action: BulkAction | SingleAction
    statuses: frozenset[DeliveryStatus]
    consequence: str
    done_phrase: str
    permission: str
    more_permissions: tuple[str, ...] = ()
    needs_confirmation: bool = True
    has_channel_choice: bool = False
    has_time_input: bool = False
    has_reason_input: bool = False
    shows_resend_risk: bool = False
    sends_copy: bool = False  # It makes a new notification, to whose page it leads
    is_for_scheduled: bool = False  # It applies only to deliveries with a due time in the future
    is_for_unattempted: bool = False

    def is_permitted(self, user: Any) -> bool:
        """Return whether the user may run the action."""
        return bool(user.has_perms((self.permission, *self.more_permissions)))

    def applies_to(self, delivery: DeliveryDocument, *, now: datetime) -> bool:
        """Return whether the action applies to a delivery."""
        if delivery["status"] not in self.statuses:
            return False
        if self.is_for_unattempted and delivery["attempt_count"]:
            return False
        at = delivery.get("next_attempt_at")
        return not self.is_for_scheduled or (at is not None and at > now)


RETRY = StaffAction(
    name="retry",
    button="Retry failed channels",
    question="Retry {}?",
    action=BulkAction.RETRY,
    # Of the suppressed and waiting channels, only those that a retry sends: RetryChoice.covers.
    statuses=frozenset({S.FAILED, S.SUPPRESSED, S.PENDING}),
    consequence="Retries the failed channels of this notification. A suppressed one that can reach "
    "the recipient by now is sent, too, and one that waits for its next attempt is sent at once.",
    done_phrase="requeued",
    permission="notifications.retry_notification",
    shows_resend_risk=True,
)
RESEND = StaffAction(
    name="resend",
    button="Resend",
    question="Resend {}?",
    action=BulkAction.RESEND,
    statuses=frozenset(DeliveryStatus),
    consequence="Sends a copy as a new, linked notification.",
    done_phrase="resent",
    permission="notifications.resend_notification",
    has_channel_choice=True,
    shows_resend_risk=True,
    sends_copy=True,
)
LIFT_AND_RESEND = StaffAction(
    name="lift",
    button="Lift suppression and resend",
    question="Lift suppression and resend {}?",
    action=SingleAction.LIFT_AND_RESEND,
    statuses=LIFTABLE_STATUSES,
    consequence="Lifts the bounce or manual suppression of the address, for all notifications to "
    "it, and sends a copy as a new, linked notification.",
    done_phrase="resent",
    permission="notifications.resend_notification",
    more_permissions=("recipients.delete_suppression",),
    has_reason_input=True,
    sends_copy=True,
)
CORRECT = StaffAction(
    name="correct",
    button="Correct address and resend",
    question="Correct the address and resend {}?",
    action=SingleAction.CORRECT_AND_RESEND,
    statuses=LIFTABLE_STATUSES,
    consequence="Sends a copy to the corrected address, as a new, linked notification.",
    done_phrase="resent to the corrected address",
    permission="notifications.correct_address",
    more_permissions=("notifications.resend_notification",),
    shows_resend_risk=True,
    sends_copy=True,
)
CANCEL = StaffAction(
    name="cancel",
    button="Cancel pending",
    question="Cancel {}?",
    action=BulkAction.CANCEL,
    statuses=frozenset({S.PENDING}),
    consequence="Permanently cancels pending deliveries. Sends in progress complete.",
    done_phrase="cancelled",
    permission="notifications.cancel_notification",
)
SEND_NOW = StaffAction(
    name="run",
    button="Send now",
    question="Send {} now?",
    action=BulkAction.RUN_NOW,
    statuses=frozenset({S.PENDING}),
    consequence="Sends pending deliveries now; they leave their digests. What quiet hours, a "
    "limit, a pause, or an open circuit holds stays held.",
    done_phrase="is being sent",
    permission="notifications.reschedule_notification",
    is_for_scheduled=True,
)
RESCHEDULE = StaffAction(
    name="reschedule",
    button="Reschedule",
    question="Reschedule {}?",
    action=BulkAction.RESCHEDULE,
    statuses=frozenset({S.PENDING}),
    consequence="Changes the send time of deliveries without attempts.",
    done_phrase="rescheduled",
    permission="notifications.reschedule_notification",
    has_time_input=True,
    is_for_unattempted=True,
)
RESTORE = StaffAction(
    name="restore",
    button="Restore",
    question="Restore {}?",
    action=SingleAction.RESTORE,
    statuses=frozenset(DeliveryStatus),
    consequence="Undoes the deletion by its client. Cancelled deliveries stay cancelled.",
    done_phrase="restored. Cancelled deliveries stay cancelled",
    permission="notifications.restore_notification",
    needs_confirmation=False,
)
STAFF_ACTIONS = (RETRY, RESEND, LIFT_AND_RESEND, CORRECT, SEND_NOW, RESCHEDULE, CANCEL, RESTORE)
