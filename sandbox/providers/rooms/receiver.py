"""A receiver of webhooks that follow Standard Webhooks: it verifies each signature."""

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from http import HTTPStatus
from typing import Any

from ...outcomes import Outcome, Outcomes, accepted, refused
from ...responses import ProviderResponse
from .. import network_faults
from ..answers import RefusedError, json_object, json_response
from ..base import IncomingRequest, RequestResult
from .base import LONG, Posted, RoomProvider
from .cards import Card, build

SECRET = "whsec_c2FuZGJveC1yb29tLXNlY3JldC0wMDAwMDAwMA=="
"""The secret of all receivers. It isn't secret."""
TOLERANCE = 300
KNOWN = "known"
MAX_KNOWN = 100_000
_TIMESTAMP = re.compile(r"\d{1,12}", re.ASCII)
OUTCOMES = Outcomes(
    (
        accepted("received", "204. So is every path that is not in this table.", status=204),
        accepted("created", "201 with a body.", status=201),
        refused("gone", 410, "410: it wants nothing more."),
        refused("unauthorized", 401, "401."),
        refused("forbidden", 403, "403."),
        refused("not-found", 404, "404."),
        refused("unprocessable", 422, "422."),
        refused("ratelimit", 429, "429 with Retry-After."),
        refused(LONG, 429, "429 with Retry-After: 3600."),
        refused("gateway-timeout", 504, "504 with Retry-After."),
        *network_faults.fault_outcomes(204),
        refused("server-error", 500, "500, until the receiver is let through."),
        network_faults.BAD_GATEWAY,
        network_faults.REDIRECT,
    ),
    default="received",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookReceiver(RoomProvider):
    """Receivers: ``POST /receivers/{name}``. Each takes a ``webhook-id`` once."""

    name = "webhook"
    title = "Webhook"
    route = "/receivers/{rest:.*}"
    path = re.compile(r"/receivers/(?P<room>[A-Za-z0-9_.-]+)")
    max_body = 1024 * 1024
    outcomes = OUTCOMES
    addressing = "The beginning of the last part of the URL chooses the outcome."
    _known: dict[tuple[str, ...], None] = field(default_factory=dict, compare=False)
    """Rooms and IDs of the messages that were taken, the oldest first."""

    def handle(self, request: IncomingRequest, *, now: datetime) -> RequestResult:
        """Return the answer to a request. That to a known message is the same."""
        result = RoomProvider.handle(self, request, now=now)
        if not result.accepted:
            return result
        key = (*result.recipients, request.headers["webhook-id"])
        if key in self._known:
            reason = "The receiver knows the webhook-id, and drops the message."
            return replace(result, outcome=KNOWN, accepted=False, reason=reason)
        self._known[key] = None
        if len(self._known) > MAX_KNOWN:
            del self._known[next(iter(self._known))]
        return result

    def unknown_path(self, request: IncomingRequest) -> RefusedError:
        """Return the answer to a path that is no receiver."""
        return _refused(404, "not-found", "There is no such receiver.")

    def read(self, request: IncomingRequest, *, room: str, now: datetime) -> Posted:
        """Return the message, if its signature is valid and its body has the form."""
        headers, raw = request.headers, request.body or b""
        message_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
        if not message_id or not _TIMESTAMP.fullmatch(timestamp):
            raise _refused(400, "no-headers", "webhook-id or webhook-timestamp is missing.")
        if abs(now.timestamp() - int(timestamp)) > TOLERANCE:
            raise _refused(400, "too-old", "The timestamp is over five minutes off.")
        if not _is_signed(message_id, timestamp, raw, headers.get("webhook-signature", "")):
            raise _refused(401, "bad-signature", "No signature is valid.")
        body = json_object(request)
        is_event = body is not None and isinstance(body.get("type"), str)
        if body is None or not is_event or not isinstance(body.get("data"), dict):
            raise _refused(400, "bad-form", "The body needs type, timestamp, and data.")
        return Posted(room=room, body=body)

    def refuse(self, outcome: Outcome, posted: Posted, *, now: datetime) -> ProviderResponse:
        """Return the answer of an outcome that isn't an acceptance."""
        return json_response(outcome.status, {"error": outcome.name}, self.pause(outcome))

    def accept(
        self, outcome: Outcome, posted: Posted, request: IncomingRequest, *, now: datetime
    ) -> tuple[str | None, ProviderResponse]:
        """Return an answer without an ID."""
        body = b"{}" if outcome.status == HTTPStatus.CREATED else b""
        return None, ProviderResponse(status=outcome.status, body=body, mode=outcome.mode)

    def card(self, body: Mapping[str, Any]) -> Card:
        """Return the event as text: what a receiver shows is its own."""
        data = body.get("data") or {}
        text = str(data.get("text") or "")
        return build(title=str(data.get("title") or ""), paragraphs=[_escaped(text)])


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _is_signed(message_id: str, timestamp: str, raw: bytes, signatures: str) -> bool:
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    signed = b".".join((message_id.encode(), timestamp.encode(), raw))
    expected = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    return any(
        version == "v1" and hmac.compare_digest(expected, given)
        for version, _, given in (entry.partition(",") for entry in signatures.split())
    )


def _refused(status: int, name: str, reason: str) -> RefusedError:
    return RefusedError(name, json_response(status, {"error": name}), reason)
