"""Email by SendGrid's v3 API: bodies, batches, and bisection of rejected batches.

The ``sendgrid`` library only verifies webhooks. Its transport has no timeout, follows redirects
with the key, and opens a connection per request. Its mail builder takes 40 µs per email; a test
checks that both build the same body. A request is repeated only after a clear rejection.
"""

import base64
import secrets
from collections import Counter, defaultdict, deque
from collections.abc import (
    Awaitable,
    Callable,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from email.utils import quote
from functools import cached_property
from typing import Any, Self

import msgspec

from domain.errors import (
    FailureCode,
    PermanentError,
    ProviderError,
    ProviderResponse,
    ProviderUnavailableError,
    Reach,
    TransientError,
)
from domain.media_types import parse_media_type
from notifyproject.platform.egress import Deadline

from .. import contract, http, http_client
from ..contract import (
    Message,
    NotAttemptedError,
    SendRequest,
    SendResult,
    WebhookRequest,
    WebhookResult,
    is_expired,
)
from ..http import Request
from ..mail import (
    AttachmentFile,
    SenderScopes,
    ascii_email,
    attachment_files,
    cannot_build,
    extra_headers,
    reply_to,
    sender_of,
)
from ..response_rules import ResponseKind as Kind
from ..response_rules import ResponseRule, classify
from . import webhooks

MAX_REQUESTS = 100
"""Maximum requests per batch. Two invalid addresses among a thousand need about 40 requests."""
Outcome = SendResult | ProviderError
_SPECIALS = frozenset('()<>[]:;@\\,"')
"""Characters of RFC 5322 that a name has in quotes only, without the full stop of initials."""
ACCEPTED = 202
BAD_REQUEST = 400
MAX_RECIPIENTS = 1_000
MIN_REQUEST_SECONDS = 2.0
"""Seconds that must be left for another request of a batch."""
MAX_ID_LENGTH = 200
"""Longer IDs and field names are cut. SendGrid's are shorter."""
RESPONSE_RULES: Sequence[ResponseRule] = (
    # domain/retry.py has the delay until its retry.
    ResponseRule((429,), Kind.TRANSIENT, "Rate limited by SendGrid.", FailureCode.RATE_LIMITED),
    ResponseRule((408,), Kind.TRANSIENT, "SendGrid did not receive the whole request in time."),
    ResponseRule(
        (400, 403),
        Kind.UNAVAILABLE,
        "SendGrid rejected the configured sender.",
        field=r"from\b.*",
        is_of_scope=True,
    ),
    ResponseRule(
        (*range(300, 400), 401, 402, 403, 404, 405, 407, 415),
        Kind.UNAVAILABLE,
        "SendGrid rejected the configured account or URL.",
    ),
    ResponseRule(
        (400,),
        Kind.INVALID_RECIPIENT,
        "SendGrid rejected the recipient's address.",
        field=r"personalizations\.\d+\.to(\.\d+(\.email)?)?",
    ),
    ResponseRule(
        (413,), Kind.PERMANENT, "The message exceeds SendGrid's size limit.", FailureCode.TOO_LARGE
    ),
    ResponseRule((400,), Kind.PERMANENT, "SendGrid rejected the message."),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestResult:
    """The outcome of one request, and whether to bisect its group."""

    outcome: Outcome
    can_bisect: bool = False


async def send_bisecting(
    requests: Iterable[Sequence[int]],
    *,
    send: Callable[[Sequence[int]], Awaitable[RequestResult]],
    has_time: Callable[[], bool],
) -> dict[int, Outcome]:
    """Send groups of emails, and halve each rejected group. Return the outcome of each email.

    ``requests`` are groups of the emails' numbers; ``send`` makes one request for a group. No
    request follows once the provider is unavailable, ``has_time`` returns False, or MAX_REQUESTS is
    reached.
    """
    outcomes: dict[int, Outcome] = {}
    groups = deque(requests)
    stop_error: ProviderError | None = None
    request_count = 0
    while groups:
        group = groups.popleft()
        if not stop_error and request_count and (request_count >= MAX_REQUESTS or not has_time()):
            stop_error = NotAttemptedError()
        if stop_error is not None:
            outcomes |= dict.fromkeys(group, stop_error)
            continue
        result = await send(group)
        request_count += 1
        if result.can_bisect and len(group) > 1:
            middle = len(group) // 2
            groups += [group[:middle], group[middle:]]
            continue
        outcome = result.outcome
        outcomes |= dict.fromkeys(group, outcome)
        if (
            isinstance(outcome, ProviderUnavailableError)
            or (isinstance(outcome, TransientError) and not outcome.is_ambiguous)
        ) and outcome.reach is Reach.ACCOUNT:
            # The error applies to all remaining requests.
            stop_error = outcome
    return outcomes


@dataclass(frozen=True, slots=True)
class SubstitutionTag:
    """Placeholder in a batch's text for the last segment of each recipient's unsubscribe URL.

    With only that segment replaced, SendGrid recognizes the link for click tracking, whether it
    substitutes or rewrites first.
    """

    text: str

    @classmethod
    def new(cls) -> Self:
        """Return a random tag that no content contains."""
        return cls(f"-{secrets.token_hex(8)}-")

    def substitute(self, text: str, *, url: str | None) -> str:
        """Replace the last segment of ``url`` by the tag wherever ``url`` occurs in ``text``."""
        return text if url is None else text.replace(url, f"{url.rpartition('/')[0]}/{self.text}")


COMPARISON_TAG = SubstitutionTag("\0")
"""Tag for comparing emails by batch key. It contains NUL, which no sent text contains."""


def personalization(request: SendRequest, *, tag: SubstitutionTag | None) -> dict[str, Any]:
    """Return the personalization object for one recipient. Raises ValueError."""
    fields: dict[str, Any] = {
        "to": [_address(_recipient_name(request.recipient_name), ascii_email(request.recipient))],
        "custom_args": {"reference": request.reference},
        "headers": dict(extra_headers(request.message)),
    }
    url = request.message.unsubscribe_url
    if tag is not None and url is not None:
        fields["substitutions"] = {tag.text: url.rpartition("/")[2]}
    return fields


def _recipient_name(name: str | None) -> str | None:
    """Return a name that SendGrid takes as one: it reads names of recipients as a header has them.

    It splits others at a comma or semicolon, and takes none with a bracket or a colon.
    """
    return f'"{quote(name)}"' if name and _SPECIALS & set(name) else name


def _address(name: str | None, address: str) -> dict[str, str]:
    return {"name": name, "email": address} if name else {"email": address}


@dataclass(frozen=True, kw_only=True)
class SendGrid(SenderScopes):
    """Provider that sends email through one SendGrid account."""

    api_key: str = field(repr=False)
    base_url: str
    sender: str
    """``Name <address>``."""
    webhook_public_key: str
    clock: Callable[[], datetime]
    reply_to: str | None = None
    attachment_hosts: AbstractSet[str] = frozenset()
    name: str = "sendgrid"

    @cached_property
    def account(self) -> str:
        """The account's ID: the provider's name and a hash of the URL and the API key."""
        return contract.account_name(self.name, self.base_url, self.api_key)

    async def send(self, request: SendRequest, *, timeout: float) -> SendResult:
        """Send one email; see :class:`providers.contract.Provider`."""
        deadline = Deadline.after(timeout)
        async with attachment_files(
            request.message.attachments, hosts=self.attachment_hosts, deadline=deadline
        ) as files:
            with _wrap_build_errors():
                body = msgspec.json.encode(self.body(request, files=files))
            result = await self._request_mail(body, (request,), deadline)
        outcome = result.outcome
        if isinstance(outcome, ProviderError):
            raise outcome
        return outcome

    def batch_key(self, message: Message) -> Hashable:
        """Return a key that is equal for emails that may share a request."""
        url = message.unsubscribe_url
        return (
            message.subject,
            COMPARISON_TAG.substitute(message.text, url=url),
            message.html and COMPARISON_TAG.substitute(message.html, url=url),
            url and COMPARISON_TAG.substitute(url, url=url),
            message.sender,
            message.reply_to,
            message.attachments,
        )

    async def send_many(
        self, requests: Sequence[SendRequest], *, timeout: float
    ) -> list[SendResult | ProviderError]:
        """Send one email to several recipients. Return the outcome of each.

        Up to MAX_RECIPIENTS share a request, and so an unknown outcome. A recipient with an invalid
        field is left out. Raises ValueError if the emails differ by :meth:`batch_key`.
        """
        if len({self.batch_key(request.message) for request in requests}) > 1:
            raise ValueError("the emails differ")
        deadline = Deadline.after(timeout)
        tag = SubstitutionTag.new()
        outcomes: dict[int, Outcome] = {}
        personalizations: dict[int, msgspec.Raw] = {}
        for number, request in enumerate(requests):
            try:
                with _wrap_build_errors():
                    fields = personalization(request, tag=tag)
                    personalizations[number] = msgspec.Raw(msgspec.json.encode(fields))
            except PermanentError as error:
                outcomes[number] = error
        if personalizations:
            outcomes |= await self._send_batch(personalizations, requests, tag, deadline)
        return [outcomes[number] for number in range(len(requests))]

    def body(self, request: SendRequest, *, files: Sequence[AttachmentFile] = ()) -> dict[str, Any]:
        """Return the JSON body for one email as Python objects."""
        return {
            **self.shared_body(request.message, files, None),
            "personalizations": [personalization(request, tag=None)],
        }

    def parse_webhook(self, request: WebhookRequest) -> WebhookResult:
        """Verify a webhook and read its events. Raises InvalidSignatureError or ValueError."""
        webhooks.verify(
            request.headers, request.raw, public_key=self.webhook_public_key, now=self.clock()
        )
        return replace(self.parse_logged(request.raw), logged=request.raw.decode())

    def parse_logged(self, raw: bytes) -> WebhookResult:
        """Read the events of a verified webhook. Raises ValueError."""
        return webhooks.parse_webhook(raw)

    async def _send_batch(
        self,
        personalizations: Mapping[int, msgspec.Raw],
        requests: Sequence[SendRequest],
        tag: SubstitutionTag,
        deadline: Deadline,
    ) -> dict[int, Outcome]:
        first = requests[min(personalizations)]
        try:
            async with attachment_files(
                first.message.attachments, hosts=self.attachment_hosts, deadline=deadline
            ) as files:
                with _wrap_build_errors():
                    shared = msgspec.json.encode(self.shared_body(first.message, files, tag))

                async def send(group: Sequence[int]) -> RequestResult:
                    own = msgspec.json.encode([personalizations[n] for n in group])
                    # The shared part is encoded only once.
                    body = shared[:-1] + b',"personalizations":' + own + b"}"
                    mails = [requests[n] for n in group]
                    return await self._request_mail(body, mails, deadline)

                addresses = {number: requests[number].recipient for number in personalizations}
                return await send_bisecting(
                    _split_requests(addresses),
                    send=send,
                    has_time=lambda: deadline.seconds_left >= MIN_REQUEST_SECONDS,
                )
        except ProviderError as error:
            # Caused by a shared part, such as an attachment; nothing was sent.
            return dict.fromkeys(personalizations, error)

    async def _request_mail(
        self, body: bytes, requests: Sequence[SendRequest], deadline: Deadline
    ) -> RequestResult:
        timeout, now = deadline.seconds_left, self.clock()
        if timeout <= 0 or any(is_expired(request, now=now) for request in requests):
            return RequestResult(outcome=NotAttemptedError())
        try:
            response = await http_client.send(
                Request(
                    url=f"{self.base_url}/v3/mail/send",
                    body=body,
                    headers={
                        "Authorization": f"Bearer {self.api_key}",
                        "Content-Type": "application/json",
                    },
                    timeout=timeout,
                )
            )
        except ProviderError as error:
            return RequestResult(outcome=error)
        if response.status == ACCEPTED:
            message_id = response.headers.get("x-message-id", "")[:MAX_ID_LENGTH] or None
            accepted = ProviderResponse(status=response.status)
            return RequestResult(outcome=SendResult(provider_id=message_id, response=accepted))
        # Emails of one request have one sender.
        return self._classify_refusal(response, scope=requests[0].scope)

    def _classify_refusal(self, response: http.Response, *, scope: str | None) -> RequestResult:
        fields = _error_fields(response)
        error = classify(
            RESPONSE_RULES,
            response=ProviderResponse(
                status=response.status, code=next(iter(fields), None), excerpt=response.excerpt
            ),
            fields=fields,
            retry_after=self._parse_pause(response.headers),
            scope=scope,
        )
        is_message_level = fields and not any(f.startswith("personalizations") for f in fields)
        return RequestResult(
            outcome=error, can_bisect=response.status == BAD_REQUEST and not is_message_level
        )

    def shared_body(
        self, message: Message, files: Sequence[AttachmentFile], tag: SubstitutionTag | None
    ) -> dict[str, Any]:
        """Return what all recipients share, with ``tag`` in unsubscribe URLs. Raises ValueError."""
        sender = sender_of(message, default=self.sender)
        body: dict[str, Any] = {"from": _address(sender.name, sender.address)}
        if message.subject is not None:
            body["subject"] = message.subject
        reply_address = reply_to(message, default=self.reply_to)
        if reply_address is not None:
            body["reply_to"] = _address(*reply_address)
        url = message.unsubscribe_url
        body["content"] = [
            {"type": kind, "value": tag.substitute(text, url=url) if tag else text}
            for kind, text in (("text/plain", message.text), ("text/html", message.html))
            if text
        ]
        if files:
            body["attachments"] = [
                {
                    "content": base64.b64encode(file.content).decode("ascii"),
                    "filename": file.filename,
                    "type": _attachment_type(file.content_type),
                    "disposition": "attachment",
                }
                for file in files
            ]
        return body

    def _parse_pause(self, headers: Mapping[str, str]) -> float | None:
        """Return the pause in seconds, from X-RateLimit-Reset, an epoch, or from Retry-After."""
        reset = headers.get("x-ratelimit-reset", "")
        if webhooks.EPOCH.fullmatch(reset):
            return http.clamp_pause(int(reset) - self.clock().timestamp())
        return http.retry_after_seconds(headers, now=self.clock())


def _attachment_type(content_type: str) -> str:
    """Return the type of an attachment in SendGrid's form, which has no parameters.

    The method of an invitation is the exception that it takes, and no calendar works without it.
    """
    kind = parse_media_type(content_type)
    if kind is None:
        return content_type
    method = dict(kind.parameters).get("method")
    if kind.name == "text/calendar" and method is not None and method.isalpha():
        return f"{kind.name}; method={method}"
    return kind.name


@contextmanager
def _wrap_build_errors() -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise cannot_build() from error


def _split_requests(addresses: Mapping[int, str]) -> Iterator[list[int]]:
    """Yield groups of at most MAX_RECIPIENTS email numbers. No group repeats an address."""
    seen: Counter[str] = Counter()
    rounds: defaultdict[int, list[int]] = defaultdict(list)
    for number, address in addresses.items():
        rounds[seen[address.lower()]].append(number)
        seen[address.lower()] += 1
    for numbers in rounds.values():
        for start in range(0, len(numbers), MAX_RECIPIENTS):
            yield numbers[start : start + MAX_RECIPIENTS]


def _error_fields(response: http.Response) -> list[str]:
    errors = http.decode_object(response.body).get("errors")
    if not isinstance(errors, list):
        return []
    names = [error.get("field") for error in errors if isinstance(error, dict)]
    return [http.redact(name)[:MAX_ID_LENGTH] for name in names if isinstance(name, str)]
