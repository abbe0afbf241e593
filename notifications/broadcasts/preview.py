"""Previews a broadcast by a sample of its audience. Nothing is stored or sent."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from bson import ObjectId

from domain.limits import Limit
from notifications.documents.broadcasts import BroadcastDocument
from notifications.store.new_notifications import NewNotification

from ..intake import pages, warnings
from ..intake.page_result import PageResult
from ..intake.requests import Caller
from . import approvals, audiences, creation
from .audiences import audience_of
from .requests import BroadcastRequest, request_of

SAMPLE = 1_000
"""Recipients in the sample. The standard error of a share is at most 1.6 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitEffect:
    """How many recipients of a sample a limit would hold or suppress now."""

    limit: Limit
    recipients: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BroadcastPreview:
    """The effect that a broadcast would have now."""

    audience_size: int | None
    """Approximate; None: not counted."""
    sampled: int
    page: PageResult
    """The result for the sample."""
    limits: Sequence[LimitEffect]
    needs_approval: bool
    """Whether another person approves it before it's sent."""

    def estimate(self, recipients: int) -> int | None:
        """Return how many of the audience a number of the sample stands for."""
        if self.audience_size is None or not self.sampled:
            return None
        return round(recipients * self.audience_size / self.sampled)


def preview(request: BroadcastRequest, *, caller: Caller, now: datetime) -> BroadcastPreview:
    """Validate a broadcast, and return what it would do now, by a sample of its audience.

    Raises InvalidRequestError or PyMongoError.
    """
    document = creation.validate(request, caller=caller, now=now)
    is_required = caller.requires_approval and not caller.is_test
    return preview_document(
        document,
        caller=caller,
        needs_approval=is_required or approvals.needs_approval(document),
        now=now,
    )


def preview_document(
    document: BroadcastDocument, *, caller: Caller, needs_approval: bool, now: datetime
) -> BroadcastPreview:
    """Prepare a broadcast for a sample of its audience. Raises PyMongoError."""
    addressees = audiences.sample(audience_of(document), limit=SAMPLE)
    page = PageResult()
    new = pages.prepare_page(
        addressees,
        request_of(document),
        ids={each.key: ObjectId() for each in addressees},
        caller=caller,
        page=page,
        now=now,
    )
    page.accepted = len(new)
    return BroadcastPreview(
        # As it was when the broadcast was submitted, if an approval is asked for.
        audience_size=document.get("approval", {}).get(
            "audience_size", document.get("audience_size")
        ),
        sampled=len(addressees),
        page=page,
        limits=_limits_reached(new, now),
        needs_approval=needs_approval,
    )


def _limits_reached(new: Sequence[NewNotification], now: datetime) -> list[LimitEffect]:
    found = warnings.read_limits(new, now=now)
    reached = Counter(
        name for own in found.reached.values() for name in {usage.limit.name for _, usage in own}
    )
    return [
        LimitEffect(limit=found.applying[name], recipients=reached[name])
        for name in sorted(found.applying)
    ]
