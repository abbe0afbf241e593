"""Actions on a recipient: reveal addresses, revoke inbox tokens, export, erase.

Each has its own permission and audit entry. Export and erasure require typing the user ID. All but
the revocation require re-authentication.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from datetime import datetime
from typing import Any

from bson import ObjectId
from django.contrib import messages
from django.contrib.admin.models import DELETION
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
    StreamingHttpResponse,
)
from django.urls import reverse

from access.clients import inbox_tokens
from access.models import APIClient
from devices.documents import DeviceDocument
from devices.tokens import mask_token
from domain.time import utc_now
from notifications.documents.notification import NotificationDocument
from notifications.documents.records import DeliveryAttemptDocument
from notifyproject.db.paging import MAX_PAGE, Cursor
from privacy import erasure
from privacy import export as privacy_export
from recipients.masking import can_reveal_addresses
from recipients.models import Recipient

from ..notifications import presentation
from ..widgets.actions import record_change, require_post
from ..widgets.formats import count_of
from ..widgets.links import RECIPIENTS
from ..widgets.reauthentication import require_reauthentication
from .page import recipient_page, recipient_url

Action = Callable[[Any, HttpRequest, str], HttpResponseBase]
EXCLUDED_FIELDS = frozenset({"encrypted_content", "claim", "data"})
"""Fields of a notification that hold secrets or no data on the recipient."""


def _require_permission(admin: Any, request: HttpRequest, permission: str) -> HttpResponse | None:
    may_look = admin.has_view_permission(request)
    return require_post(request, allowed=may_look and request.user.has_perm(permission))


def reveal(admin: Any, request: HttpRequest, user_id: str) -> HttpResponseBase:
    """Show a recipient with unmasked addresses, and record the access."""
    allowed = admin.has_view_permission(request) and can_reveal_addresses(request.user)
    if refused := require_post(request, allowed=allowed) or require_reauthentication(request):
        return refused
    record_change(request, Recipient, user_id, "Revealed addresses.")
    return recipient_page(admin, request, user_id, unmasked=True)


def revoke_inbox_tokens(admin: Any, request: HttpRequest, user_id: str) -> HttpResponseBase:
    """Revoke a recipient's inbox tokens of all clients."""
    if refused := _require_permission(admin, request, "recipients.sign_out_recipient"):
        return refused
    for client in list(APIClient.objects.only("pk")):
        inbox_tokens.revoke_all(client_id=client.pk, user_id=user_id)
    record_change(request, Recipient, user_id, "Revoked inbox tokens.")
    messages.success(request, "Inbox tokens revoked")
    return HttpResponseRedirect(recipient_url(user_id))


def export(admin: Any, request: HttpRequest, user_id: str) -> HttpResponseBase:
    """Stream all data on a recipient as a JSON file."""
    if refused := (
        _require_permission(admin, request, "recipients.export_recipient")
        or require_reauthentication(request, is_download=True)
    ):
        return refused
    if not _is_confirmed(request, user_id):
        return HttpResponseRedirect(recipient_url(user_id))
    record_change(request, Recipient, user_id, "Exported.")
    response = StreamingHttpResponse(_export_lines(user_id), content_type="application/json")
    response["Content-Disposition"] = 'attachment; filename="recipient.json"'
    return response


def erase(admin: Any, request: HttpRequest, user_id: str) -> HttpResponseBase:
    """Erase a recipient. If the time of a request isn't enough, another request continues."""
    if refused := (
        _require_permission(admin, request, "recipients.erase_recipient")
        or require_reauthentication(request)
    ):
        return refused
    if not _is_confirmed(request, user_id):
        return HttpResponseRedirect(recipient_url(user_id))
    done = erasure.erase(user_id, now=utc_now())
    counts = (
        f"{count_of(done.notifications, 'notification')} and {count_of(done.devices, 'device')}"
    )
    if done.is_complete:
        record_change(request, Recipient, user_id, f"Erased, with {counts}.", flag=DELETION)
        messages.success(request, f"{user_id} erased, with {counts}.")
        return HttpResponseRedirect(reverse(RECIPIENTS))
    record_change(request, Recipient, user_id, f"Started erasing: {counts} so far.", flag=DELETION)
    messages.warning(request, f"{counts} erased so far. Erase again to continue.")
    return HttpResponseRedirect(recipient_url(user_id))


VIEWS: Mapping[str, Action] = {
    "reveal": reveal,
    "sign-out": revoke_inbox_tokens,
    "export": export,
    "erase": erase,
}


def _is_confirmed(request: HttpRequest, user_id: str) -> bool:
    if request.POST.get("typed", "").strip() == user_id.strip():
        return True
    messages.error(request, "No change: enter the user ID to confirm.")
    return False


def _without_credential(device: DeviceDocument) -> dict[str, Any]:
    """Return a device without its token or subscription, with which anyone could push to it."""
    token, subscription = device.get("device_token"), device.get("subscription")
    kept: dict[str, Any] = {
        name: value
        for name, value in device.items()
        if name not in ("device_token", "subscription")
    }
    if token is not None:
        kept["device_token"] = mask_token(token)
    if subscription is not None:
        kept["subscription"] = {name: subscription[name] for name in ("host", "fingerprint")}
    return kept


def _export_lines(user_id: str) -> Iterator[str]:
    """Yield the JSON file in pieces. Notifications are read page by page."""
    part = privacy_export.export(user_id, client_id=None, limit=MAX_PAGE)
    first = {
        "user_id": user_id,
        "person": part.recipient,
        "devices": [_without_credential(device) for device in part.devices],
        "topics": part.topics,
        "suppressions": part.suppressions,
        "whatsapp_ids": part.whatsapp_ids,
        "last_inbound_at": part.last_inbound_at,
    }
    yield f'{_json(first)[:-1]}, "notifications": ['
    separator = ""
    while True:
        for document in part.notifications:
            attempts = [a for a in part.attempts if a["notification_id"] == document["_id"]]
            yield f"{separator}{_json(_notification(document, attempts))}"
            separator = ", "
        if not part.has_more:
            break
        last = part.notifications[-1]
        place = Cursor((last["created_at"], last["_id"]))
        part = privacy_export.export(user_id, client_id=None, limit=MAX_PAGE, cursor=place)
    yield "]}"


def _notification(
    document: NotificationDocument, attempts: Sequence[DeliveryAttemptDocument]
) -> dict[str, Any]:
    fields = {name: value for name, value in document.items() if name not in EXCLUDED_FIELDS}
    return {**fields, "data": presentation.variables(document, unmasked=True), "attempts": attempts}


def _json(value: Any) -> str:
    return json.dumps(value, default=_to_json_value, ensure_ascii=False)


def _to_json_value(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, ObjectId):
        return str(value)
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    raise TypeError(f"no JSON for {type(value).__name__}")
