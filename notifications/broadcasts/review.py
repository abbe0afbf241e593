"""What an approver sees of a broadcast: its effect on its audience, and its messages."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import msgspec

from notifications.documents.broadcasts import BroadcastDocument

from ..files.enumeration import first_good_row
from ..intake import preview as messages
from ..intake.preview import CHANNEL_NOT_CHOSEN, ChannelPreview
from ..intake.requests import Caller, NotificationRequest
from . import fan_out, preview, repository
from .preview import BroadcastPreview
from .requests import request_of


@dataclass(frozen=True, slots=True, kw_only=True)
class BroadcastReview:
    """A broadcast as it would be sent now."""

    effect: BroadcastPreview
    messages: Sequence[ChannelPreview]
    """For a recipient with all addresses, on the channels that are used."""


def review(document: BroadcastDocument, *, now: datetime) -> BroadcastReview:
    """Return what would be sent, with the template version that was fixed. Raises PyMongoError."""
    whole = repository.read(document["_id"])
    approval = whole.get("approval")
    caller = Caller(
        client_id=whole["client_id"],
        is_test=whole.get("is_test", False),
        may_send_critical=True,
        template_version=approval["template_version"] if approval is not None else None,
        design=approval["design"] if approval is not None else None,
    )
    return BroadcastReview(
        effect=preview.preview_document(whole, caller=caller, needs_approval=True, now=now),
        messages=[
            channel
            for channel in messages.preview(
                fan_out.for_example(_with_a_row(whole)),
                caller=caller,
                shows_registry=True,
                shows_secrets=False,
                now=now,
            ).channels
            if channel.not_sent_reason != CHANNEL_NOT_CHOSEN
        ],
    )


def _with_a_row(document: BroadcastDocument) -> NotificationRequest:
    """Return the request of a broadcast, with the data of the first row that a file sends."""
    request = request_of(document)
    file_id = document.get("file_id")
    row = None if file_id is None else first_good_row(file_id)
    return request if row is None else msgspec.structs.replace(request, data=dict(row.data))
