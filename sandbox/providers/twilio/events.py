"""Twilio's webhooks: status callbacks and inbound messages, signed with the auth token."""

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, urldefrag, urlencode

import aiohttp

from ...credentials import TwilioAccount
from .. import segments
from ..base import InboundMessage
from .answers import VERSION
from .errors import FAILURES

KINDS = frozenset({"queued", "sending", "sent", "delivered", "failed", "canceled"})
SIGNATURE = "X-Twilio-Signature"
STOP_WORDS = frozenset(
    ("STOP", "UNSUBSCRIBE", "END", "QUIT", "STOPALL", "REVOKE", "OPTOUT", "CANCEL")
)
START_WORDS = frozenset(("START", "YES", "UNSTOP"))
HELP_WORDS = frozenset(("HELP", "INFO"))
MAX_REPEATS = 5
_OVERRIDES = re.compile(r"rc=([0-9])|rp=([0-9a-z,]+)", re.ASCII)


def new_sid() -> str:
    """Return the SID of a new message."""
    return f"SM{secrets.token_hex(16)}"


def keyword(text: str) -> str | None:
    """Return what a message asks for: STOP, START, or HELP. A sentence asks for nothing."""
    word = text.strip().upper()
    for name, words in (("STOP", STOP_WORDS), ("START", START_WORDS), ("HELP", HELP_WORDS)):
        if word in words:
            return name
    return None


def status(
    kind: str,
    *,
    sid: str,
    form: Mapping[str, str],
    account: TwilioAccount,
    account_sid: str,
    code: int | None = None,
) -> dict[str, str]:
    """Return the parameters of a status callback."""
    name = FAILURES[code].status if kind == "failed" and code is not None else kind
    found = {
        "AccountSid": account_sid,
        "ApiVersion": VERSION,
        "From": form.get("From", account.number),
        "MessageSid": sid,
        "MessageStatus": name,
        "SmsSid": sid,
        "SmsStatus": name,
        "To": form["To"],
    }
    if "MessagingServiceSid" in form:
        found["MessagingServiceSid"] = form["MessagingServiceSid"]
    if kind == "delivered":
        found["RawDlrDoneDate"] = ""
    if code is not None:
        found |= {"ErrorCode": str(code), "ErrorMessage": FAILURES[code].text}
    return found


def inbound_message(
    message: InboundMessage, *, sender: str, account: TwilioAccount
) -> dict[str, str]:
    """Return the parameters of an inbound message's webhook, some of which are empty."""
    sid, asked = new_sid(), keyword(message.text)
    return {
        "AccountSid": account.account_sid,
        "ApiVersion": VERSION,
        "Body": message.text,
        "From": sender,
        "FromCity": "",
        "FromCountry": "",
        "FromState": "",
        "FromZip": "",
        "MessageSid": sid,
        "MessagingServiceSid": account.messaging_service_sid,
        "NumMedia": "0",
        "NumSegments": str(segments.count(message.text)),
        "SmsMessageSid": sid,
        "SmsSid": sid,
        "SmsStatus": "received",
        "To": account.number,
        **({"OptOutType": asked} if asked else {}),
    }


class SignedWebhooks:
    """The format of Twilio's webhooks: one form each, signed with the URL."""

    batch = 1

    def __init__(self, account: TwilioAccount) -> None:
        self._account = account

    async def prepare(self, session: aiohttp.ClientSession, url: str) -> str | None:
        """Do nothing: Twilio has no handshake."""

    def stamp(self, payload: dict[str, Any], *, now: datetime) -> None:
        """Set the carrier's time of a delivery. Twilio tells no other."""
        if payload.get("RawDlrDoneDate") == "":
            payload["RawDlrDoneDate"] = f"{now:%y%m%d%H%M}"

    def encode(self, payloads: Sequence[Mapping[str, Any]]) -> bytes:
        """Return the body of one POST."""
        return urlencode(payloads[0]).encode()

    def headers(self, body: bytes, *, url: str, now: datetime) -> dict[str, str]:
        """Return the headers of a POST, whose signature covers the URL and the parameters."""
        signed = urldefrag(url).url
        for name, value in sorted(parse_qsl(body.decode(), keep_blank_values=True)):
            signed += name + value
        digest = hmac.digest(self._account.auth_token.encode(), signed.encode(), hashlib.sha1)
        return {
            "Content-Type": "application/x-www-form-urlencoded; charset=UTF-8",
            "User-Agent": "TwilioProxy/1.1",
            SIGNATURE: base64.b64encode(digest).decode(),
            "I-Twilio-Idempotency-Token": hashlib.sha256(body).hexdigest()[:36],
        }

    def may_repeat(self, url: str, *, status: int | None, repeats: int) -> bool:
        """Return whether the overrides after ``#`` let a failed POST be repeated.

        Without any, a POST without a response is repeated once.
        """
        count, problems = 1, "ct"
        for found in _OVERRIDES.finditer(urldefrag(url).fragment):
            count = min(int(found[1]), MAX_REPEATS) if found[1] else count
            problems = found[2] or problems
        kinds = set(problems.split(","))
        if status is None:
            is_covered = bool(kinds & {"ct", "rt", "all"})
        else:
            is_covered = bool(kinds & {f"{status // 100}xx", "all"})
        return is_covered and repeats < count
