"""SMS by Twilio's Messages resource."""

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlencode

from domain.countries import country_of
from domain.errors import FailureCode, PermanentError, ProviderResponse
from domain.states import Category

from .. import contract, http, http_client
from ..contract import (
    NotAttemptedError,
    SendRequest,
    SendResult,
    SendTarget,
    WebhookReply,
    WebhookRequest,
    WebhookResult,
    is_expired,
)
from ..http import Request
from . import webhooks
from .responses import append_code, classify_response, failure_rule, parse_code

VERSION = "2010-04-01"
MAX_VALIDITY_SECONDS = 36_000
CALLBACK_OVERRIDES = "#rc=3&rp=5xx,ct,rt"
"""Twilio repeats a callback three times after a failure, in place of once without a connection. It
neither sends nor signs this part of the URL."""
NO_CONTENT = WebhookReply(body="", status=HTTPStatus.NO_CONTENT)
"""Twilio has answered a STOP itself, and would send whatever text a response had."""
ENDED = frozenset({"failed", "undelivered", "canceled"})
"""Statuses of a new message that is not sent, and about which no callback follows."""
_SERVICE = re.compile(r"MG[0-9a-f]{32}", re.ASCII)
_COUNT = re.compile(r"[0-9]{1,3}", re.ASCII)
_SID = re.compile(r"(?:SM|MM)[0-9a-f]{32}", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Twilio:
    """Provider that sends by a messaging service, or from a number or sender ID."""

    account_sid: str
    user: str
    """The account SID, or an API key."""
    password: str = field(repr=False)
    sender: str
    """The SID of a messaging service, a number, or a sender ID."""
    base_url: str
    callback_url: str
    """Called by Twilio with what became of a message. Empty: there are no receipts."""
    auth_tokens: tuple[str, ...] = field(repr=False)
    """They sign the webhooks: two of them during a rotation. None: every webhook is rejected."""
    clock: Callable[[], datetime]
    name: str = "twilio"

    @cached_property
    def account(self) -> str:
        """The account's name, with a hash of the account, its credentials, and the sender."""
        return contract.account_name(
            self.name, self.account_sid, self.user, self.password, self.sender
        )

    async def send(self, request: SendRequest, *, timeout: float) -> SendResult:
        """Send one message.

        See :class:`providers.contract.Provider`.
        """
        now = self.clock()
        if is_expired(request, now=now):
            raise NotAttemptedError
        try:
            body = urlencode(self.parameters(request, now=now)).encode()
        except ValueError as error:
            raise PermanentError("Can't build the SMS.", code=FailureCode.RENDER_FAILED) from error
        response = await http_client.send(
            Request(
                url=f"{self.base_url}/{VERSION}/Accounts/{quote(self.account_sid)}/Messages.json",
                body=body,
                headers={
                    "Authorization": basic_credentials(self.user, self.password),
                    "Content-Type": "application/x-www-form-urlencoded",
                },
                timeout=timeout,
            )
        )
        result = _parse_acceptance(response)
        if result is None:
            raise classify_response(response, country=request.scope, now=self.clock())
        return result

    def scope(self, target: SendTarget) -> str:
        """Return the country of a number, for which the account may lack a sender."""
        return country_of(target.address) or ""

    def parameters(self, request: SendRequest, *, now: datetime) -> dict[str, str]:
        """Return the parameters of a message."""
        is_service = _SERVICE.fullmatch(self.sender) is not None
        found = {
            "To": request.recipient,
            "MessagingServiceSid" if is_service else "From": self.sender,
            "Body": request.message.text,
        }
        if self.callback_url:
            # A callback has none of our fields. With the reference in the signed URL, it resolves
            # an attempt whose response was lost.
            reference = quote(request.reference, safe="")
            found["StatusCallback"] = f"{self.callback_url}?ref={reference}{CALLBACK_OVERRIDES}"
        if request.expires_at is not None:
            left = int((request.expires_at - now).total_seconds())
            found["ValidityPeriod"] = str(min(max(left, 1), MAX_VALIDITY_SECONDS))
        if request.category == Category.MARKETING:
            # It protects forms that anybody can fill in, and would stop a campaign.
            found["RiskCheck"] = "disable"
        return found

    def parse_webhook(self, request: WebhookRequest) -> WebhookResult:
        """Verify and read a webhook. Raises InvalidSignatureError or ValueError."""
        parameters = webhooks.verify(
            request.headers, request.raw, url=request.url, auth_tokens=self.auth_tokens
        )
        logged = webhooks.describe(parameters, reference=request.query.get("ref"), now=self.clock())
        return replace(webhooks.parse_logged(logged.encode()), logged=logged, reply=NO_CONTENT)

    def parse_logged(self, raw: bytes) -> WebhookResult:
        """Return the contents of a verified webhook. Raises ValueError."""
        return webhooks.parse_logged(raw)


def basic_credentials(user: str, password: str) -> str:
    """Return the value of the Authorization header."""
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def _parse_acceptance(response: http.Response) -> SendResult | None:
    """Return the result of a send, or None for another response. Raises PermanentError."""
    if response.status not in (HTTPStatus.CREATED, HTTPStatus.OK):
        return None
    message = http.decode_object(response.body)
    sid, status = message.get("sid"), message.get("status")
    if not isinstance(sid, str) or not _SID.fullmatch(sid):
        return None
    status = status if isinstance(status, str) and status.isascii() else ""
    provider_response = ProviderResponse(status=response.status, code=status[:20] or None)
    if status in ENDED:
        code = parse_code(message.get("error_code"))
        rule = failure_rule(code) if code is not None else None
        raise PermanentError(
            append_code(rule.reason if rule else "Twilio didn't send the message.", code),
            code=rule.code if rule else FailureCode.REJECTED,
            response=provider_response,
        )
    return SendResult(
        provider_id=sid, response=provider_response, units=_parse_units(message.get("num_segments"))
    )


def _parse_units(value: Any) -> int | None:
    """Return the number of parts. Twilio says 0 until it has chosen a sender."""
    is_count = isinstance(value, str) and _COUNT.fullmatch(value)
    return int(value) or None if is_count else None
