"""Bulk operations: one thing done to all notifications of a cohort, in the background.

A person chooses a cohort and an action, sees what that would do, and starts it. Workers then go
through it page by page, at a pace, under a lease: docs/bulk_operations.md.
"""

from .cohorts import failures, order_of
from .deciding import ALWAYS_LEFT_OUT, Plan, cancel, discard, pause, preview, resume, start
from .keeping import LEASE, UNSTARTED_LIFE, one
from .pace import FASTEST, SLOWEST, USUAL
from .records import CREATED_AT, FAILED_AT, NOBODY, Cohort, NotPossible, Operation, Staff
from .resends import resend_id
from .results import COLUMNS, Settled, Which, each, samples
from .running import NOTHING, PREVIEW_CAP, revive, work

__all__ = [
    "ALWAYS_LEFT_OUT",
    "COLUMNS",
    "CREATED_AT",
    "FAILED_AT",
    "FASTEST",
    "LEASE",
    "NOBODY",
    "NOTHING",
    "PREVIEW_CAP",
    "SLOWEST",
    "UNSTARTED_LIFE",
    "USUAL",
    "Cohort",
    "NotPossible",
    "Operation",
    "Plan",
    "Settled",
    "Staff",
    "Which",
    "cancel",
    "discard",
    "each",
    "failures",
    "one",
    "order_of",
    "pause",
    "preview",
    "resend_id",
    "resume",
    "revive",
    "samples",
    "start",
    "work",
]
