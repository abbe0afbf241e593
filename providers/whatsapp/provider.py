"""WhatsApp by Meta's Cloud API: free-form text in the 24-hour service window, else templates."""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import msgspec

from domain.addresses import fold_phone
from domain.errors import FailureCode, PermanentError, ProviderResponse, TransientError
from domain.links import has_link

from .. import contract, http, http_client
from ..contract import (
    Message,
    NotAttemptedError,
    SendRequest,
    SendResult,
    WebhookReply,
    WebhookRequest,
    WebhookResult,
    is_expired,
)
from ..http import Request
from . import webhooks
from .responses import MAX_ID_LENGTH, classify_response

MAX_TEXT_LENGTH = 4096
MAX_CAPTION_LENGTH = 1024
OTHER_IMAGES = (
    ".webp",
    ".gif",
    ".svg",
    ".avif",
    ".heic",
    ".heif",
    ".jxl",
    ".bmp",
    ".tif",
    ".tiff",
    ".ico",
    ".apng",
)
"""Endings of images that WhatsApp doesn't show: it takes JPEG and PNG."""
Body = Mapping[str, Any]
_DIGITS = re.compile(r"[1-9]\d{6,14}", re.ASCII)
_LINK = re.compile(r"https?://[^\s/]")
# WhatsApp rejects line breaks, tabs, and over four spaces in a row in template parameters.
_GAPS = re.compile(r"\s*[\n\r\t\v\f\u0085\u2028\u2029]\s*| {5,}")
MIN_SECOND_REQUEST_SECONDS = 1.0
"""Seconds that must be left for a second request: a request cut off by a timeout is ambiguous."""
ACCEPTED_STATUS = "accepted"
"""The status of a message that WhatsApp sends at once. It holds others for review."""


def text_message(request: SendRequest) -> Body:
    """Return a free-form message, with an image if the text fits. Raises PermanentError."""
    message = request.message
    text = _text_with_link(message)
    if len(text) > MAX_TEXT_LENGTH:
        raise PermanentError(
            f"The text exceeds WhatsApp's limit of {MAX_TEXT_LENGTH:,} characters.",
            code=FailureCode.TOO_LARGE,
        )
    if message.image_url and len(text) <= MAX_CAPTION_LENGTH and _is_accepted(message.image_url):
        caption = {"caption": text} if text else {}
        return _build_message("image", {"link": message.image_url, **caption}, request)
    has_link = _LINK.search(text) is not None
    return _build_message("text", {"body": text, "preview_url": has_link}, request)


def _is_accepted(image_url: str) -> bool:
    """Return False for an image whose URL has the ending of another format than JPEG and PNG.

    WhatsApp would accept the message, and fail later.
    """
    return not urlsplit(image_url).path.lower().endswith(OTHER_IMAGES)


def template_message(template: contract.WhatsAppTemplateMessage, request: SendRequest) -> Body:
    """Return the body of a message that uses an approved template."""
    content: dict[str, Any] = {"name": template.name, "language": {"code": template.language}}
    if template.parameters:
        content["components"] = [{"type": "body", "parameters": _texts(*template.parameters)}]
    if template.button is not None:
        button = {"type": "button", "sub_type": "url", "index": "0"}
        button_component = {**button, "parameters": _texts(template.button)}
        content["components"] = [*content.get("components", ()), button_component]
    return _build_message("template", content, request)


def _texts(*values: str) -> list[Body]:
    return [{"type": "text", "text": _GAPS.sub(" ", value)} for value in values]


def _build_message(kind: str, content: Body, request: SendRequest) -> Body:
    return {
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        "to": request.recipient,
        "type": kind,
        kind: content,
        "biz_opaque_callback_data": request.reference,
    }


def _text_with_link(message: Message) -> str:
    link = message.deep_link
    if not link or not link.startswith("https://") or has_link(message.text, link):
        return message.text
    return f"{message.text}\n\n{link}" if message.text else link


@dataclass(frozen=True, kw_only=True)
class WhatsApp:
    """Provider that sends from one phone number by the Cloud API."""

    token: str = field(repr=False)
    phone_number_id: str
    business_account_id: str = ""
    """Owner of the templates. Empty: templates can't be submitted or listed."""
    base_url: str
    app_secret: str = field(repr=False)
    """Signs the webhooks. Empty: every webhook is rejected."""
    verify_token: str = field(repr=False)
    """Presented by Meta in the webhook handshake. Empty: every handshake is rejected."""
    clock: Callable[[], datetime]
    version: str
    name: str = "whatsapp"

    @cached_property
    def account(self) -> str:
        """The account's name, with a hash of the phone number ID and the access token."""
        return contract.account_name(self.name, self.phone_number_id, self.token)

    async def send(self, request: SendRequest, *, timeout: float) -> SendResult:
        """Send one message: as the template if the window is closed, also by WhatsApp's answer.

        See :class:`providers.contract.Provider`.
        """
        started, template = time.monotonic(), request.message.whatsapp_template
        if request.is_service_window_open:
            try:
                text_body = text_message(request)
                return await self._request_message(text_body, request, timeout=timeout)
            except PermanentError as error:
                if error.code is not FailureCode.WINDOW_CLOSED or template is None:
                    raise
                timeout -= time.monotonic() - started
                if timeout < MIN_SECOND_REQUEST_SECONDS:
                    raise TransientError(
                        "WhatsApp requires the template, but no time was left to send it.",
                        code=FailureCode.PROVIDER_ERROR,
                        response=error.response,
                    ) from error
        if template is None:
            raise PermanentError(
                "Outside the 24-hour window, and no WhatsApp template can be sent.",
                code=FailureCode.WINDOW_CLOSED,
            )
        body = template_message(template, request)
        result = await self._request_message(body, request, timeout=timeout)
        excerpt = f"Sent as template {template.name} ({template.language})."
        return replace(result, response=replace(result.response, excerpt=excerpt))

    def parse_webhook(self, request: WebhookRequest) -> WebhookResult:
        """Verify and read a webhook, or answer Meta's handshake with its challenge.

        Raises InvalidSignatureError or ValueError.
        """
        if request.method != "POST":
            challenge = webhooks.challenge(request.query, verify_token=self.verify_token)
            return WebhookResult(reply=WebhookReply(body=challenge))
        webhooks.verify(request.headers, request.raw, app_secret=self.app_secret)
        redacted = webhooks.redact_webhook(request.raw)
        return replace(self.parse_logged(request.raw), logged=redacted)

    def parse_logged(self, raw: bytes) -> WebhookResult:
        """Return the contents of a verified webhook. Raises ValueError."""
        return webhooks.parse_webhook(raw, phone_number_id=self.phone_number_id)

    async def _request_message(
        self, body: Body, request: SendRequest, *, timeout: float
    ) -> SendResult:
        if is_expired(request, now=self.clock()):
            raise NotAttemptedError
        try:
            encoded = msgspec.json.encode(body)
        except ValueError as error:
            raise PermanentError(
                "Can't build the WhatsApp message.", code=FailureCode.RENDER_FAILED
            ) from error
        response = await http_client.send(
            Request(
                url=f"{self.base_url}/{self.version}/{self.phone_number_id}/messages",
                body=encoded,
                headers={
                    "Authorization": f"Bearer {self.token}",
                    "Content-Type": "application/json",
                },
                timeout=timeout,
            )
        )
        result = _parse_acceptance(response, recipient=request.recipient)
        if result is None:
            raise classify_response(response, now=self.clock())
        return result


def _parse_acceptance(response: http.Response, *, recipient: str) -> SendResult | None:
    if response.status != HTTPStatus.OK:
        return None
    answer = http.decode_object(response.body)
    messages = answer.get("messages")
    first = messages[0] if isinstance(messages, list) and messages else None
    if not isinstance(first, dict):
        return None
    message_id, state = first.get("id"), first.get("message_status")
    if not isinstance(message_id, str) or not message_id:
        return None
    message_status = (
        state[:MAX_ID_LENGTH] if isinstance(state, str) and state != ACCEPTED_STATUS else None
    )
    return SendResult(
        provider_id=message_id[:MAX_ID_LENGTH],
        response=ProviderResponse(status=response.status, code=message_status),
        other_address=_other_number(answer.get("contacts"), recipient),
    )


def _other_number(contacts: Any, recipient: str) -> str | None:
    """Return WhatsApp's form of the recipient's number if it differs from ours."""
    first = contacts[0] if isinstance(contacts, list) and contacts else None
    digits = http.as_object(first).get("wa_id")
    if not isinstance(digits, str) or not _DIGITS.fullmatch(digits):
        return None
    phone = f"+{digits}"
    return phone if fold_phone(phone) != fold_phone(recipient) else None
