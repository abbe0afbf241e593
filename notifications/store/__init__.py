"""The only writer of delivery state.

Every change is a named transition, compare-and-set on the delivery's status and, for a worker's, on
the claim's token. The states: :mod:`notifications.states`; the diagram: docs/state_machine.md.
"""

from notifyproject.db.collections import DUPLICATE_KEY

from .accepting import Accepted, DuplicateEntity, accept
from .contents import Content, Recipient, content_of, recipient_of
from .devices import DeviceLog, device_logs
from .documents import (
    Claimed,
    Document,
    NewDelivery,
    NewNotification,
    Parked,
    ProviderAnswer,
    Reference,
    Settlement,
    Try,
)
from .leasing import LEASE, claim, park, release, settle, start, withdraw
from .operating import cancel, hasten, link_resend, mark_all_read, mark_read, requeue
from .receipts import Report, apply_report, is_known
from .recovering import Unresolved, rescue, resolve, unresolved

__all__ = [
    "DUPLICATE_KEY",
    "LEASE",
    "Accepted",
    "Claimed",
    "Content",
    "DeviceLog",
    "Document",
    "DuplicateEntity",
    "NewDelivery",
    "NewNotification",
    "Parked",
    "ProviderAnswer",
    "Recipient",
    "Reference",
    "Report",
    "Settlement",
    "Try",
    "Unresolved",
    "accept",
    "apply_report",
    "cancel",
    "claim",
    "content_of",
    "device_logs",
    "hasten",
    "is_known",
    "link_resend",
    "mark_all_read",
    "mark_read",
    "park",
    "recipient_of",
    "release",
    "requeue",
    "rescue",
    "resolve",
    "settle",
    "start",
    "unresolved",
    "withdraw",
]
