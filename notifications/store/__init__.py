"""The only writer of delivery state, by compare-and-set. Transitions: docs/reference/states.md."""

from .acceptance import Accepted, DuplicateEntity, accept
from .actions import (
    cancel,
    cancel_pending,
    link_resend,
    make_due_now,
    reopen,
    reschedule,
)
from .callback_marks import backfill_marks, clear_marks, pending_callbacks
from .device_attempts import (
    DeviceHistory,
    attempts_at,
    device_histories,
    record_device_receipt,
)
from .digests import (
    Closing,
    Opening,
    Seal,
    Window,
    acquire_due,
    cancel_members,
    count_closed,
    count_open,
    drop_members,
    end_digest,
    erase_digests,
    find_digests,
    find_erased,
    finish,
    leave_digests,
    merge_members,
    most_urgent,
    next_due,
    open_digests,
    seal,
    separate_members,
    slide_digests,
)
from .documents import (
    AttemptReference,
    ClaimedDelivery,
    Document,
    LimitUse,
    NewDelivery,
    NewNotification,
    NotSent,
    ProviderAnswer,
    Settlement,
    TargetAttempt,
    content_of,
    current_hold,
    delivery_record,
    holds_of,
    recipient_of,
)
from .encrypted_content import (
    decrypt,
    encrypted_contents,
    is_secret_expired,
    is_shown_in_inbox,
    purge_secrets,
    secret_in,
)
from .inbox import (
    MATCH_SENT,
    Inbox,
    Marked,
    MarkedPart,
    act,
    archive,
    due_snoozes,
    mark_part_read,
    mark_read,
    mark_read_by_client,
    mark_seen,
    mark_unread,
    mark_unread_by_client,
    read_position,
    resurface,
    save_read_position,
    snooze,
    unarchive,
    unsnooze,
)
from .leases import (
    LEASE,
    LEASES,
    NOT_ATTEMPTED,
    claim,
    poison_candidates,
    release,
    return_unsent,
    settle,
    settle_not_sent,
    start,
)
from .limit_uses import (
    MovedUp,
    Refusal,
    RefusalKind,
    Reservation,
    UseRequest,
    delivery_key,
    erase_counters,
    give_back,
    read_counters,
    reserve_uses,
    set_stricter,
    stricter_of,
)
from .receipts import DeliveryReceipt, apply_receipt
from .recovery import (
    UnknownOutcome,
    count_due_before,
    expire_leases,
    give_up_due_before,
    resolve_unknown,
    unknown_outcomes,
)
from .removal import (
    DELETION_REASON,
    Erasable,
    Removed,
    delete,
    erasable,
    erasable_at,
    erase,
    erase_content,
    is_content_removed,
    match_ended_before,
    purge,
    purged_at,
    remove_content,
    restore,
    set_purge_dates,
)
from .steps import mark_acted, match_unreached, open_next_steps

__all__ = ["Accepted", "DuplicateEntity", "accept"]
__all__ += ["cancel", "cancel_pending", "link_resend", "make_due_now"]
__all__ += ["reopen", "reschedule"]
__all__ += ["backfill_marks", "clear_marks", "pending_callbacks"]
__all__ += ["DeviceHistory", "attempts_at", "device_histories", "record_device_receipt"]
__all__ += ["Closing", "Opening", "Seal", "Window", "acquire_due", "cancel_members"]
__all__ += ["count_closed", "count_open"]
__all__ += ["drop_members", "end_digest", "erase_digests", "find_digests"]
__all__ += ["find_erased", "finish"]
__all__ += ["leave_digests", "merge_members", "most_urgent", "next_due", "open_digests"]
__all__ += ["seal", "separate_members", "slide_digests"]
__all__ += ["AttemptReference", "ClaimedDelivery", "Document", "NewDelivery", "NotSent"]
__all__ += ["NewNotification", "ProviderAnswer", "Settlement", "TargetAttempt", "content_of"]
__all__ += ["delivery_record", "recipient_of"]
__all__ += ["decrypt", "encrypted_contents", "is_secret_expired", "is_shown_in_inbox"]
__all__ += ["purge_secrets", "secret_in"]
__all__ += ["MATCH_SENT", "Inbox", "Marked", "MarkedPart", "act", "archive"]
__all__ += ["mark_part_read", "mark_read", "read_position", "save_read_position"]
__all__ += ["mark_read_by_client", "mark_seen", "mark_unread", "mark_unread_by_client"]
__all__ += ["due_snoozes", "resurface", "snooze", "unarchive", "unsnooze"]
__all__ += ["LimitUse", "MovedUp", "Refusal", "RefusalKind", "Reservation", "UseRequest"]
__all__ += ["delivery_key", "erase_counters", "give_back", "read_counters", "reserve_uses"]
__all__ += ["current_hold", "holds_of", "set_stricter", "stricter_of"]
__all__ += ["LEASE", "LEASES", "NOT_ATTEMPTED", "claim", "poison_candidates", "release"]
__all__ += ["settle_not_sent"]
__all__ += ["return_unsent", "settle", "start"]
__all__ += ["DeliveryReceipt", "apply_receipt"]
__all__ += ["UnknownOutcome", "expire_leases", "resolve_unknown", "unknown_outcomes"]
__all__ += ["count_due_before", "give_up_due_before"]
__all__ += ["Erasable", "Removed", "erasable", "erasable_at", "erase", "erase_content"]
__all__ += [
    "is_content_removed",
    "match_ended_before",
    "purge",
    "purged_at",
    "remove_content",
    "set_purge_dates",
]
__all__ += ["DELETION_REASON", "delete", "restore"]
__all__ += ["mark_acted", "match_unreached", "open_next_steps"]
