"""The only writer of delivery state.

Every change is a named transition, compare-and-set on the delivery's status and, for a worker's, on
the claim's token. The states: :mod:`domain.states`; the diagram: docs/state_machine.md.
"""

from .accepting import Accepted, DuplicateEntity, accept
from .content_removal import Removed, is_content_removed, remove_content
from .contents import content_of, recipient_of
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
from .erasing import Erasable, erasable, erasable_at, erase
from .leasing import LEASE, claim, park, release, settle, start, suspects, withdraw
from .operating import bring_forward, cancel, cancel_pending, hasten, link_resend, requeue
from .purging import Purged, is_over_since, keep_for, purge, purged_at
from .reading import (
    Inbox,
    Marked,
    archive,
    mark_all_read,
    mark_read,
    mark_seen,
    mark_unread,
    unarchive,
)
from .receipts import Report, apply_report, is_known
from .recovering import Unresolved, rescue, resolve, unresolved
from .rescheduling import reschedule
from .secrets import forget_secrets, is_secret_gone, is_shown_in_inbox, secret_in, secret_of
from .telling import enrol, told, untold

__all__ = [
    "LEASE",
    "Accepted",
    "Claimed",
    "DeviceLog",
    "Document",
    "DuplicateEntity",
    "Erasable",
    "Inbox",
    "Marked",
    "NewDelivery",
    "NewNotification",
    "Parked",
    "ProviderAnswer",
    "Purged",
    "Reference",
    "Removed",
    "Report",
    "Settlement",
    "Try",
    "Unresolved",
    "accept",
    "apply_report",
    "archive",
    "bring_forward",
    "cancel",
    "cancel_pending",
    "claim",
    "content_of",
    "device_logs",
    "enrol",
    "erasable",
    "erasable_at",
    "erase",
    "forget_secrets",
    "hasten",
    "is_content_removed",
    "is_known",
    "is_over_since",
    "is_secret_gone",
    "is_shown_in_inbox",
    "keep_for",
    "link_resend",
    "mark_all_read",
    "mark_read",
    "mark_seen",
    "mark_unread",
    "park",
    "purge",
    "purged_at",
    "recipient_of",
    "release",
    "remove_content",
    "requeue",
    "reschedule",
    "rescue",
    "resolve",
    "secret_in",
    "secret_of",
    "settle",
    "start",
    "suspects",
    "told",
    "unarchive",
    "unresolved",
    "untold",
    "withdraw",
]
