"""WhatsApp's webhooks: their content, signatures, and the verification handshake."""

import asyncio
import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Any

import aiohttp

from ...credentials import MetaAccount
from ..base import InboundMessage
from .errors import HELP, Fault

KINDS = frozenset({"sent", "delivered", "read", "failed"})
SIGNATURE = "X-Hub-Signature-256"
OLD_SIGNATURE = "X-Hub-Signature"


def user_id(wa_id: str) -> str:
    """Return a person's stable ID, by which Meta identifies people who hide their number."""
    return f"US.{int.from_bytes(hashlib.sha256(wa_id.encode()).digest()[:8])}"


def new_message_id() -> str:
    """Return a new message ID."""
    return f"wamid.HBgL{secrets.token_urlsafe(30)}"


def status(
    kind: str,
    *,
    message_id: str,
    wa_id: str,
    at: int,
    reference: str | None,
    category: str,
    fault: Fault | None = None,
    has_number: bool = True,
    has_odd_item: bool = False,
) -> dict[str, Any]:
    """Return a webhook with a message's status, at a Unix time or (0) the time of sending.

    Without ``has_number``, it has the user ID alone, as for people with a user name.
    """
    found: dict[str, Any] = {
        "id": message_id,
        "status": kind,
        "timestamp": str(at),
        "recipient_id": wa_id,
        "recipient_user_id": user_id(wa_id),
    }
    if kind in ("sent", "delivered"):
        found["conversation"] = {"id": secrets.token_hex(16), "origin": {"type": category}}
        found["pricing"] = {
            "billable": True,
            "pricing_model": "PMP",
            "type": "regular",
            "category": category,
        }
    if fault is not None:
        found["errors"] = [_error(fault)]
    if reference is not None:
        found["biz_opaque_callback_data"] = reference
    contact = {"wa_id": wa_id, "user_id": user_id(wa_id)}
    if not has_number:
        del found["recipient_id"], contact["wa_id"]
    odd = [{"id": new_message_id(), "status": kind}] if has_odd_item else []
    return {"contacts": [contact], "statuses": [*odd, found]}


def inbound_message(message: InboundMessage, *, wa_id: str) -> dict[str, Any]:
    """Return a webhook with an inbound text or a tapped button."""
    found: dict[str, Any] = {
        "from": wa_id,
        "from_user_id": user_id(wa_id),
        "id": new_message_id(),
        "timestamp": str(message.timestamp or 0),
    }
    if message.button is None:
        found |= {"type": "text", "text": {"body": message.text}}
    else:
        button = {"id": message.button, "title": message.text}
        reply = {"type": "button_reply", "button_reply": button}
        found |= {"type": "interactive", "interactive": reply}
    contact: dict[str, Any] = {"wa_id": wa_id, "user_id": user_id(wa_id)}
    if message.name is not None:
        contact["profile"] = {"name": message.name}
    return {"contacts": [contact], "messages": [found]}


class SignedWebhooks:
    """The format of Meta's signed webhooks for the subscription field ``messages``."""

    batch = 10

    def __init__(self, account: MetaAccount) -> None:
        self._account = account
        self._verified: set[str] = set()
        self._lock = asyncio.Lock()

    async def prepare(self, session: aiohttp.ClientSession, url: str) -> str | None:
        """Do Meta's verification handshake with an endpoint, once; return the error, if any."""
        async with self._lock:
            if url in self._verified:
                return None
            problem = await self._verify_endpoint(session, url)
            if problem is None:
                self._verified.add(url)
            return problem

    async def _verify_endpoint(self, session: aiohttp.ClientSession, url: str) -> str | None:
        challenge = str(secrets.randbelow(10**10))
        query = {
            "hub.mode": "subscribe",
            "hub.challenge": challenge,
            "hub.verify_token": self._account.verify_token,
        }
        async with session.get(url, params=query, allow_redirects=False) as response:
            if response.status != HTTPStatus.OK:
                return f"the handshake was answered with {response.status}"
            answer = b""
            while len(answer) <= len(challenge) and (part := await response.content.read(64)):
                answer += part
        if hmac.compare_digest(answer, challenge.encode()):
            return None
        return "the handshake was answered with something else than the challenge"

    def stamp(self, payload: dict[str, Any], *, now: datetime) -> None:
        """Set the event's time, unless it has one."""
        for item in (*payload.get("statuses", ()), *payload.get("messages", ())):
            if item.get("timestamp") == "0":
                item["timestamp"] = str(int(now.timestamp()))

    def encode(self, payloads: Sequence[Mapping[str, Any]]) -> bytes:
        """Return the body in Meta's encoding: JSON in ASCII, with escaped slashes."""
        account = self._account
        common = {
            "messaging_product": "whatsapp",
            "metadata": {
                "display_phone_number": account.display_phone_number,
                "phone_number_id": account.phone_number_id,
            },
        }
        changes = [{"value": {**common, **payload}, "field": "messages"} for payload in payloads]
        entry = {"id": account.business_account_id, "changes": changes}
        body = {"object": "whatsapp_business_account", "entry": [entry]}
        return json.dumps(body, separators=(",", ":")).replace("/", "\\/").encode()

    def headers(self, body: bytes, *, url: str, now: datetime) -> dict[str, str]:
        """Return the headers of a POST, with the SHA-256 and the older SHA-1 signature."""
        return {
            "Content-Type": "application/json",
            "User-Agent": "facebookexternalua",
            SIGNATURE: self._account.sign(body, algorithm="sha256"),
            OLD_SIGNATURE: self._account.sign(body, algorithm="sha1"),
        }

    def may_repeat(self, url: str, *, status: int | None, repeats: int) -> bool:
        """Return True: a POST is repeated for ``retry_timeout``."""
        return True


def _error(fault: Fault) -> dict[str, Any]:
    kind = fault.kind
    return {
        "code": fault.code,
        "title": kind.title,
        "message": kind.title,
        "error_data": {"details": fault.details or kind.details},
        "href": HELP,
    }
