"""What staff may do to notifications: the words, the permission, and what each is about."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from domain.states import DeliveryStatus

from . import operations
from .operations import Outcome

S = DeliveryStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """Something staff may do to notifications."""

    name: str
    """Its place in URLs, and the action's name with ``_selected``."""
    verb: str
    button: str
    """What is written on its button."""
    run: Callable[..., Outcome]
    concerns: frozenset[DeliveryStatus]
    """The channels it is about, by where they stand."""
    consequence: str
    done: str
    """What to say after it was done to a number of notifications."""
    permission: str
    chooses_channels: bool = False
    asks_time: bool = False
    """It asks when; :attr:`run` is told, as ``at``."""
    is_judged: bool = False
    """It sends again what was sent or tried: each channel's verdict is told first."""
    is_for_what_waits: bool = False
    """It is about channels only whose time lies in the future."""
    is_for_untried: bool = False
    """It is about channels only that nothing was tried on."""

    def is_about(self, delivery: Mapping[str, Any], *, now: datetime) -> bool:
        """Return whether one channel of a notification is among what it is about."""
        if delivery["status"] not in self.concerns:
            return False
        if self.is_for_untried and delivery["attempt_count"]:
            return False
        at = delivery.get("next_attempt_at")
        return not self.is_for_what_waits or (at is not None and at > now)


RETRY = Operation(
    name="retry",
    verb="Retry",
    button="Retry failed channels",
    run=operations.retry,
    concerns=frozenset({S.FAILED}),
    consequence="What failed is tried again now, on the same notification.",
    done="tried again now",
    permission="notifications.retry_notification",
    is_judged=True,
)
RESEND = Operation(
    name="resend",
    verb="Resend",
    button="Resend",
    run=operations.resend,
    concerns=frozenset(DeliveryStatus),
    consequence="A new notification that says the same is sent now, and linked to this one.",
    done="sent again as a new notification",
    permission="notifications.resend_notification",
    chooses_channels=True,
    is_judged=True,
)
CANCEL = Operation(
    name="cancel",
    verb="Cancel",
    button="Cancel what is pending",
    run=operations.cancel,
    concerns=frozenset({S.PENDING}),
    consequence="What has not been sent is withdrawn for good. What is on its way goes out.",
    done="withdrawn",
    permission="notifications.cancel_notification",
)
RUN = Operation(
    name="run",
    verb="Run now",
    button="Run now",
    run=operations.run_now,
    concerns=frozenset({S.PENDING}),
    consequence="What waits is due now. Quiet hours, suppressions and an expiry hold all the same.",
    done="due now",
    permission="notifications.reschedule_notification",
    is_for_what_waits=True,
)
RESCHEDULE = Operation(
    name="reschedule",
    verb="Reschedule",
    button="Reschedule",
    run=operations.reschedule,
    concerns=frozenset({S.PENDING}),
    consequence="It is sent at the time you choose. What was tried already keeps its times.",
    done="scheduled anew",
    permission="notifications.reschedule_notification",
    asks_time=True,
    is_for_untried=True,
)
OPERATIONS = (RETRY, RESEND, RUN, RESCHEDULE, CANCEL)
