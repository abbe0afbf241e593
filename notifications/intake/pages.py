"""Prepares the notifications of many recipients, as a page of a broadcast and a file's check do."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

import msgspec
from bson import ObjectId

from devices import queries as devices
from domain.channels import Channel
from domain.errors import FailureCode
from domain.pacing import Pacing
from domain.states import DeliveryStatus
from domain.zones import find_zone_name, first_known_zone
from notifications.store.new_notifications import NewDelivery, NewNotification
from recipients.queries import RecipientSnapshot

from ..content.engine import RenderCache
from ..content.reminders import format_timestamp
from ..validation import InvalidRequestError, ProblemCollector, is_all, parse_channels
from .addressees import Addressee, share_of
from .page_result import NO_ADDRESS, PageResult
from .preparation import load_recipients, prepare
from .requests import Caller, NotificationRequest


def prepare_page(
    addressees: Sequence[Addressee],
    request: NotificationRequest,
    *,
    ids: Mapping[str, ObjectId],
    caller: Caller,
    page: PageResult,
    now: datetime,
    pacing: Pacing | None = None,
) -> list[NewNotification]:
    """Return the notifications of these recipients. Those without one are recorded in ``page``.

    ``ids`` are those of the notifications, by the addressees' keys. Without ``pacing``, all are
    sent now.
    """
    requests = {each.key: each.request_of(request) for each in addressees}
    snapshot = load_recipients(list(requests.values()), now=now)
    device_owners = devices.find_owners(
        [each.user_id for each in addressees if each.user_id is not None]
    )
    render_cache = RenderCache()
    named_channels = None
    if request.channels is not None and not is_all(request.channels):
        named_channels = parse_channels(request.channels, problems=ProblemCollector())
    found: list[NewNotification] = []
    for each in addressees:
        own_request, has_device = requests[each.key], each.user_id in device_owners
        if named_channels is not None:
            reachable = _reachable(
                named_channels, own_request, snapshot=snapshot, has_device=has_device
            )
            if not reachable:
                page.skip(each.key, NO_ADDRESS)
                continue
            own_request = msgspec.structs.replace(own_request, channels=reachable)
        if pacing is not None:
            at = pacing.time_for(share_of(ids[each.key]), zone=_zone_of(own_request, snapshot))
            if at > now:
                own_request = msgspec.structs.replace(
                    own_request, scheduled_at=format_timestamp(at)
                )
        try:
            new = prepare(
                own_request,
                notification_id=ids[each.key],
                caller=caller,
                snapshot=snapshot,
                now=now,
                render_cache=render_cache,
                has_device=has_device,
                # The data that all share was checked when the broadcast was created.
                is_data_checked=each.recipient is None,
            ).notification
        except InvalidRequestError as refusal:
            page.reject(each.key, refusal)
            continue
        if any(delivery.status is DeliveryStatus.PENDING for delivery in new.deliveries):
            found.append(new)
        else:
            page.skip(each.key, _skip_reason(new.deliveries))
    return found


def _zone_of(request: NotificationRequest, snapshot: RecipientSnapshot) -> ZoneInfo:
    """Return the recipient's time zone: the request's, or the registered one, or UTC."""
    known = snapshot.registered.get(request.user_id or "")
    given = find_zone_name(request.recipient.timezone or "")
    return ZoneInfo(first_known_zone(given, known.timezone if known is not None else None))


def _reachable(
    channels: Sequence[Channel],
    request: NotificationRequest,
    *,
    snapshot: RecipientSnapshot,
    has_device: bool,
) -> list[str]:
    """Return those of the named channels that reach a recipient."""
    known = snapshot.registered.get(request.user_id or "")
    found = []
    for channel in channels:
        kind = channel.spec.address
        own = getattr(request.recipient, kind.field) if kind is not None else None
        address = own or (known.address(channel) if known is not None else None)
        if channel.can_reach(address=address, user_id=request.user_id, has_device=has_device):
            found.append(channel.value)
    return found


def _skip_reason(deliveries: Sequence[NewDelivery]) -> str:
    codes = [delivery.failure_code for delivery in deliveries if delivery.failure_code is not None]
    specific = [code for code in codes if code is not FailureCode.NO_ADDRESS]
    return (specific or codes)[0].value
