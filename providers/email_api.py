"""Providers of email with an API, each described by a row: :class:`.email_kinds.EmailKind`."""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from domain.errors import ProviderError, ProviderResponse
from notifyproject.platform.egress import Deadline

from . import contract, email_webhooks, http, http_client
from .contract import (
    SendRequest,
    SendResult,
    WebhookRequest,
    WebhookResult,
    seconds_to_send,
)
from .email_kinds import EmailKind, WebhookSecrets
from .http import SUCCESSES, Response
from .mail import AttachmentFile, SenderScopes, attachment_files, cannot_build, reply_to
from .response_rules import classify

if TYPE_CHECKING:
    from .email_payloads import BuiltMail, MailBuilder

MAX_CODE = 100
"""Characters of a recorded code."""


@dataclass(frozen=True, kw_only=True)
class EmailApi(SenderScopes):
    """Provider that sends email through one account."""

    kind: EmailKind = field(repr=False)
    name: str
    options: Mapping[str, str] = field(repr=False)
    """The arguments of anymail's backend: the credentials and ``api_url``."""
    sender: str
    """``Name <address>``."""
    secrets: WebhookSecrets
    clock: Callable[[], datetime]
    reply_to: str | None = None
    attachment_hosts: AbstractSet[str] = frozenset()

    @cached_property
    def account(self) -> str:
        """The account's name, with a hash of its credentials and the URL."""
        return contract.account_name(self.name, *self.options.values())

    @cached_property
    def _builder(self) -> "MailBuilder":
        from .email_payloads import MailBuilder

        return MailBuilder(kind=self.kind, options=self.options, sender=self.sender)

    async def send(self, request: SendRequest, *, timeout: float) -> SendResult:
        """Send one email; see :class:`providers.contract.Provider`."""
        deadline = Deadline.after(timeout)
        async with attachment_files(
            request.message.attachments, hosts=self.attachment_hosts, deadline=deadline
        ) as files:
            built = self.build(request, files=files, timeout=deadline.seconds_left)
            left = seconds_to_send(request, left=deadline.seconds_left, now=self.clock())
            response = await http_client.send(replace(built.request, timeout=left))
        if response.status in SUCCESSES and (message_id := built.accepted_id(response)):
            accepted = ProviderResponse(status=response.status)
            return SendResult(provider_id=message_id, response=accepted)
        error = self.refusal(response, scope=request.scope)
        if error.response and self._took_before(request, error.response.code):
            # Another repeat would get the same answer, and receipts have the reference.
            return SendResult(provider_id=None, response=error.response)
        raise error

    def build(
        self,
        request: SendRequest,
        *,
        files: tuple[AttachmentFile, ...] = (),
        timeout: float = http.TOTAL_TIMEOUT,
        extra: Mapping[str, Any] | None = None,
    ) -> "BuiltMail":
        """Return the request for an email. Raises PermanentError."""
        try:
            reply_address = reply_to(request.message, default=self.reply_to)
        except ValueError:
            raise cannot_build() from None
        return self._builder.build(
            request,
            reply_to=reply_address,
            files=files,
            reference=self._reference(request),
            timeout=timeout,
            extra=extra,
        )

    def refusal(self, response: Response, *, scope: str | None = None) -> ProviderError:
        """Return the error of an answer other than an acceptance, to a request with a scope."""
        refusal = self.kind.read_refusal(http.decode_object(response.body))
        # Of another body, such as a proxy's page, only the status counts.
        plain = response.text.strip()
        text = refusal.text or (plain if plain in self.kind.plain_refusals else "")
        code = http.redact(refusal.code)[:MAX_CODE] if refusal.code else None
        return classify(
            self.kind.rules,
            response=ProviderResponse(
                status=response.status, code=code, excerpt=response.excerpt or code or ""
            ),
            fields=[found for found in (refusal.code, text) if found],
            retry_after=self._pause(response.headers),
            scope=scope,
        )

    def parse_webhook(self, request: WebhookRequest) -> WebhookResult:
        """Verify a webhook and read its events. Raises InvalidSignatureError or ValueError."""
        self.kind.verify(request, self.secrets, self.clock())
        return replace(self.parse_logged(request.raw), logged=request.raw.decode())

    def parse_logged(self, raw: bytes) -> WebhookResult:
        """Read the events of a verified webhook. Raises ValueError."""
        return email_webhooks.parse_webhook(self.kind, raw)

    def _reference(self, request: SendRequest) -> str:
        return request.reference

    def _took_before(self, request: SendRequest, code: str | None) -> bool:
        """Return whether the answer says that the provider took an earlier attempt."""
        return False

    def _pause(self, headers: Mapping[str, str]) -> float | None:
        """Return the pause in seconds, from the provider's own header or from Retry-After."""
        own = headers.get(self.kind.pause_header or "", "")
        if own.isascii() and own.isdigit():
            return http.clamp_pause(float(own))
        return http.retry_after_seconds(headers, now=self.clock())


@dataclass(frozen=True, kw_only=True)
class IdempotentEmailApi(EmailApi):
    """One that takes repeats of a request as one; see :class:`.contract.IdempotentProvider`."""

    @property
    def idempotency(self) -> timedelta:
        """How long the provider remembers a key."""
        return self.kind.idempotency or timedelta()

    def _reference(self, request: SendRequest) -> str:
        # The bytes of a repeat are those of the first request, with the first reference.
        return request.key

    def _took_before(self, request: SendRequest, code: str | None) -> bool:
        is_repeat = request.key != request.reference
        return is_repeat and code is not None and code == self.kind.repeat_code
