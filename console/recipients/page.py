"""The page of one recipient: contact, preferences, devices, suppressions and notifications."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.contrib.admin.utils import quote
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.http import urlencode

from access.clients.inbox_tokens import LIFETIME
from access.models import APIClient, Scope
from devices import queries as devices
from devices.documents import DeviceDocument
from devices.models import Platform
from domain.channels import Channel, addresses_in
from domain.limits import describe_use
from domain.states import Category
from domain.time import utc_now
from domain.zones import first_known_zone
from notifications import queries
from notifications.catalog import limits, types
from notifications.catalog.digests import OFF
from notifications.documents import notification as stored
from notifications.queries import Ordering
from notifyproject.db.collections import collection
from recipients import service_windows, suppressions, topics
from recipients.masking import can_reveal_addresses, mask_text
from recipients.models import Recipient, SuppressionReason

from ..suppressions import lift_url
from ..texts.disabled import DEVICES, explained
from ..texts.labels import CHANNELS, PLATFORM_LABELS, SOURCE_LABELS, code_label, notification_state
from ..widgets import columns, names
from ..widgets.actions import not_found, render_page
from ..widgets.links import (
    DEVICE,
    DIGEST,
    NOTIFICATION,
    NOTIFICATIONS,
    RECIPIENT,
    RECIPIENTS,
    SUPPRESSION,
    url_to_send,
)

RECENT = 25  # Number of notifications on the page
_FIELDS = {"type": 1, "status": 1, "created_at": 1, "delivery": 1, "entity_id": 1, "is_test": 1}


def recipient_url(user_id: str) -> str:
    """Return the URL of a recipient's page."""
    return reverse(RECIPIENT, args=[quote(user_id)])


def recipient_page(
    admin: Any, request: HttpRequest, user_id: str, *, unmasked: bool
) -> HttpResponse:
    """Show one recipient, or redirect to the list if the user ID is unknown."""
    if not admin.has_view_permission(request):
        raise PermissionDenied
    person = collection("recipients").find_one({"_id": user_id})
    own_devices = devices.page(user_id=user_id, limit=devices.MAX_PAGE).documents
    may_see_sent = request.user.has_perm("notifications.view_notification")
    sent = _sent(user_id) if may_see_sent else []
    if person is None and not own_devices and not sent:
        return not_found(request, "Recipient", RECIPIENTS)
    known = person or {}
    contact = (
        ("Name", known.get("name")),
        ("Email", columns.address(known.get("email"), unmasked=unmasked)),
        ("Phone", columns.address(known.get("phone"), unmasked=unmasked)),
        ("Language", known.get("locale")),
        ("Time zone", known.get("timezone")),
    )
    return render_page(
        admin,
        request,
        "console/recipients/page.html",
        title=user_id,
        original=Recipient(user_id=user_id),
        key=quote(user_id),
        person=person,
        contact=[(label, value) for label, value in contact if value],
        preferences=[
            (code_label(name), _preference_label(name, preference))
            for name, preference in sorted((known.get("preferences") or {}).items())
        ],
        quiet_hours=_quiet_hours(known),
        attributes=_attributes(known, unmasked=unmasked),
        suppressions=_suppressions(request, known, back=recipient_url(user_id)),
        last_inbound=service_windows.last_inbound(known["phone"]) if known.get("phone") else None,
        limits=_limits(user_id),
        digests=_digests(user_id) if request.user.has_perm("notifications.view_digest") else [],
        topics=[membership["topic"] for membership in topics.memberships_of(user_id)],
        devices=[_device(device) for device in own_devices],
        sent=sent,
        may_see_sent=may_see_sent,
        send_url=url_to_send(request, user_id),
        all_sent=f"{reverse(NOTIFICATIONS)}?{urlencode({'q': user_id})}",
        issuers=_issuers(),
        token_minutes=int(LIFETIME.total_seconds() // 60),
        is_revealed=unmasked and can_reveal_addresses(request.user),
        may_reveal=not unmasked and can_reveal_addresses(request.user),
        **{
            f"may_{verb}": request.user.has_perm(f"recipients.{verb}_recipient")
            for verb in ("erase", "export", "sign_out")
        },
    )


def _limits(user_id: str) -> list[tuple[str, str, datetime | None]]:
    """Return how much of each limit is used, and when the next message may be sent."""
    now, person = utc_now(), limits.person_of_user(user_id)
    lines: list[tuple[str, str, datetime | None]] = []
    for usage in limits.read_usage(limits.active_limits(), person=person, now=now):
        text = describe_use(usage.limit, used=len(usage.uses))
        if usage.is_stricter:
            text += ", the recipient's own"
        if usage.waiting:
            text += f"; {usage.waiting} held"
        lines.append((usage.limit.name, text, usage.next_at if usage.next_at > now else None))
    return lines


def _digests(user_id: str) -> list[dict[str, Any]]:
    """Return the recipient's newest open digests."""
    found = queries.open_digests_of(user_id, limit=RECENT)
    types = names.type_names({document["type"] for document in found})
    counts = queries.count_waiting_members([document["_id"] for document in found]) if found else {}
    return [
        {
            "url": reverse(DIGEST, args=[document["_id"]]),
            "type": types[document["type"]],
            "channel": CHANNELS[Channel(document["channel"])],
            "waiting": counts.get(document["_id"], 0),
            "closes_at": document["closes_at"],
        }
        for document in found
    ]


def _preference_label(name: str, preference: Any) -> str:
    if name not in list(Category) and types.is_locked(name):
        return "No effect: critical or sensitive"
    if not isinstance(preference, dict):
        return "Allowed"
    if preference.get("muted") is True:
        return "Muted"
    narrowed = [
        f"{', '.join(CHANNELS.get(channel, str(channel)) for channel in preference[name])} {limit}"
        for name, limit in (("channels", "only"), ("muted_channels", "muted"))
        if isinstance(preference.get(name), list) and preference[name]
    ]
    if preference.get("digest") == OFF:
        narrowed.append("no digest")
    elif isinstance(preference.get("digest"), dict):
        narrowed.append("own schedule of digests")
    return "; ".join(narrowed) or "Allowed"


def _quiet_hours(person: Mapping[str, Any]) -> str:
    hours = person.get("quiet_hours") or {}
    if not hours.get("enabled"):
        return "None"
    zone = first_known_zone(hours.get("timezone"), person.get("timezone"))
    return f"{hours.get('start')} to {hours.get('end')} ({zone})"


def _attributes(person: Mapping[str, Any], *, unmasked: bool) -> str:
    if not person.get("attributes"):
        return ""
    text = json.dumps(person["attributes"], indent=2, ensure_ascii=False, default=str)
    return text if unmasked else mask_text(text)


def _suppressions(
    request: HttpRequest, person: Mapping[str, Any], *, back: str
) -> list[dict[str, Any]]:
    may_view = request.user.has_perm("recipients.view_suppression")
    may_lift = request.user.has_perm("recipients.delete_suppression")
    return [
        {
            "url": reverse(SUPPRESSION, args=[quote(found["_id"])]) if may_view else None,
            "lift_url": lift_url(found["_id"], back=back) if may_lift else None,
            "channel": CHANNELS[Channel(found["channel"])],
            "reason": code_label(SuppressionReason(found["reason"]).name),
            "scope": "Marketing" if found["marketing_only"] else "Everything",
            "source": SOURCE_LABELS.get(found["source"], found["source"]),
            "since": found["created_at"],
        }
        for channel, address in addresses_in(person)
        for found in suppressions.find_by_address(channel=channel.value, address=address)
    ]


def _device(device: DeviceDocument) -> dict[str, Any]:
    reason = device.get("deactivation_reason")
    confirmations = [device.get("last_accepted_at"), device.get("last_receipt_at")]
    inactive = explained(reason, DEVICES).label if reason else "Inactive"
    return {
        "name": device.get("device_model") or f"{device['_id'][:12]}…",
        "url": reverse(DEVICE, args=[quote(device["_id"])]),
        "platform": PLATFORM_LABELS[Platform(device["platform"])],
        "is_active": device["is_active"],
        "state": "Active" if device["is_active"] else inactive,
        "seen": device.get("last_seen"),
        "last_confirmed": max((time for time in confirmations if time), default=None),
    }


def _sent(user_id: str) -> list[dict[str, Any]]:
    now = utc_now()
    found = stored.NOTIFICATIONS().find({"user_id": user_id}, _FIELDS)
    rows = list(found.sort(Ordering.NEWEST.order).hint("ntf_user_feed").limit(RECENT))
    types = names.type_names({row["type"] for row in rows})
    return [
        {
            "at": row["created_at"],
            "type": types[row["type"]],
            "entity_id": row.get("entity_id") or "",
            "status": columns.chip(*notification_state(row["status"], row["delivery"], now=now)),
            "icons": columns.channel_icons(row["delivery"], now=now),
            "test": columns.test_chip() if row.get("is_test") else "",
            "url": reverse(NOTIFICATION, args=[row["_id"]]),
        }
        for row in rows
    ]


def _issuers() -> Sequence[str]:
    scopes = [Scope.INBOX_ISSUE.value, Scope.ADMIN.value]
    clients = APIClient.objects.filter(is_active=True).only("name", "scopes").order_by("name")
    return [client.name for client in clients if not set(scopes).isdisjoint(client.scopes)]
