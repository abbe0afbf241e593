"""Email by SendGrid's v3 API: bodies, batches, and bisection of refused batches.

The ``sendgrid`` library verifies webhooks. Its transport is not used: it has no timeout, follows
redirects with the key, and opens a connection for every request. Its mail builder is not used
either: it took 40 µs for each mail, a twelfth of what a worker spends on one. A test holds the
bodies of this module against it.

Mails of one request differ only in the recipient's unsubscribe address. A substitution tag stands
in its place, and each personalization holds the value.

SendGrid accepts or refuses a request as a whole. If one recipient causes a refusal, each half is
requested on its own, down to that recipient. Nothing is sent twice: a refused request was not sent,
and a request that was not clearly refused is not repeated.
"""

import base64
import secrets
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parseaddr
from functools import cached_property
from typing import Any, Self

import msgspec

from domain.errors import (
    FailureCode,
    PermanentError,
    ProviderError,
    ProviderResponse,
    ProviderUnavailableError,
    TransientError,
)
from notifyproject.platform.egress import Deadline

from .. import http, http_client
from ..contract import (
    Message,
    NotAttemptedError,
    Receipt,
    SendRequest,
    SendResult,
    account_name,
    is_expired,
)
from ..http import Exchange, Request
from ..mail import AttachmentFile, ascii_email, fetch_attachments, reply_to, unsubscribe_headers
from ..response_rules import ResponseKind, ResponseRule, classify
from . import webhooks

MAX_REQUESTS = 100
"""For one batch. Two bad addresses among a thousand take about 40."""
Outcome = SendResult | ProviderError


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestResult:
    """What came of one request."""

    outcome: Outcome
    can_bisect: bool = False
    """It was refused, and another request without one of the recipients might not be."""


def send_bisecting(
    requests: Iterable[Sequence[int]],
    *,
    send: Callable[[Sequence[int]], RequestResult],
    has_time: Callable[[], bool],
) -> dict[int, Outcome]:
    """Return what became of each mail by its number, the largest groups being asked for first.

    ``requests`` says whose mails go together; ``send`` makes one request for some of them. It is not
    called again when the provider takes nothing at all, when ``has_time`` says no, or after
    MAX_REQUESTS.
    """
    outcomes: dict[int, Outcome] = {}
    groups = deque(requests)
    stop_error: ProviderError | None = None
    request_count = 0
    while groups:
        group = groups.popleft()
        if (
            stop_error is None
            and request_count
            and (request_count >= MAX_REQUESTS or not has_time())
        ):
            stop_error = NotAttemptedError()
        if stop_error is not None:
            outcomes |= dict.fromkeys(group, stop_error)
            continue
        result = send(group)
        request_count += 1
        if result.can_bisect and len(group) > 1:
            middle = len(group) // 2
            groups += [group[:middle], group[middle:]]
            continue
        outcomes |= dict.fromkeys(group, result.outcome)
        stop_error = _stopping_error(result.outcome)
    return outcomes


def _stopping_error(outcome: Outcome) -> ProviderError | None:
    """Return the error that holds for all that is still to be asked for; None to go on."""
    if isinstance(outcome, ProviderUnavailableError):
        return outcome
    if isinstance(outcome, TransientError) and not outcome.is_ambiguous:
        return outcome
    return None


@dataclass(frozen=True, slots=True)
class SubstitutionTag:
    """What stands for a recipient's own part of the unsubscribe address.

    It is the end of the address, behind the last slash: the link remains one to SendGrid, whichever
    it does first, putting in what it stands for or counting clicks.
    """

    text: str

    @classmethod
    def new(cls) -> Self:
        """Return a tag that nobody's words hold: it cannot be guessed."""
        return cls(f"-{secrets.token_hex(8)}-")

    def substitute(self, text: str, *, url: str | None) -> str:
        """Return a mail's text with the tag in place of the end of ``url``."""
        return text if url is None else text.replace(url, f"{url.rpartition('/')[0]}/{self.text}")


COMPARISON_TAG = SubstitutionTag("\0")
"""Compares mails that are to be alike; nothing that is sent holds a NUL."""


def batch_key(message: Message) -> Hashable:
    """Return what two mails have in common that may share a request."""
    url = message.unsubscribe_url
    return (
        message.subject,
        COMPARISON_TAG.substitute(message.text, url=url),
        message.html and COMPARISON_TAG.substitute(message.html, url=url),
        url and COMPARISON_TAG.substitute(url, url=url),
        message.reply_to,
        message.attachments,
    )


def shared_body(
    message: Message,
    *,
    sender: tuple[str, str],
    default_reply_to: str | None,
    files: Sequence[AttachmentFile],
    tag: SubstitutionTag | None,
) -> dict[str, Any]:
    """Return the part of a body that is the same for all; raises ValueError.

    ``sender`` is a name and an address. Without a ``tag`` the message's own address to unsubscribe
    is in it, for its one recipient.
    """
    body: dict[str, Any] = {"from": _address(*sender)}
    if message.subject is not None:
        body["subject"] = message.subject
    reply_address = reply_to(message, default=default_reply_to)
    if reply_address is not None:
        body["reply_to"] = _address(*reply_address)
    url = message.unsubscribe_url
    body["content"] = [
        {"type": kind, "value": tag.substitute(text, url=url) if tag else text}
        for kind, text in (("text/plain", message.text), ("text/html", message.html))
        if text
    ]
    if files:
        body["attachments"] = [_encode_attachment(file) for file in files]
    return body


def personalization(request: SendRequest, *, tag: SubstitutionTag | None) -> dict[str, Any]:
    """Return the personalization of one recipient; raises ValueError."""
    fields: dict[str, Any] = {
        "to": [_address(request.recipient_name, ascii_email(request.recipient))],
        "custom_args": {"reference": request.reference},
    }
    if headers := unsubscribe_headers(request.message):
        fields["headers"] = dict(headers)
    url = request.message.unsubscribe_url
    if tag is not None and url is not None:
        fields["substitutions"] = {tag.text: url.rpartition("/")[2]}
    return fields


def _address(name: str | None, address: str) -> dict[str, str]:
    return {"name": name, "email": address} if name else {"email": address}


def _encode_attachment(file: AttachmentFile) -> dict[str, str]:
    return {
        "content": base64.b64encode(file.content).decode("ascii"),
        "filename": file.filename,
        "type": file.content_type,
        "disposition": "attachment",
    }


ACCEPTED = 202
BAD_REQUEST = 400
MAX_RECIPIENTS = 1_000
"""Of one request."""
MIN_REQUEST_SECONDS = 2.0
"""Seconds that must be left for another request for a part of a batch."""
MAX_ID_LENGTH = 200
"""An id or field name of SendGrid's is kept up to this length; they are shorter."""
RESPONSE_RULES: Sequence[ResponseRule] = (
    ResponseRule(
        statuses=(429,),
        kind=ResponseKind.TRANSIENT,
        code=FailureCode.RATE_LIMITED,
        reason="SendGrid wants fewer requests.",
    ),
    ResponseRule(
        statuses=(408,),
        kind=ResponseKind.TRANSIENT,
        code=FailureCode.PROVIDER_ERROR,
        reason="SendGrid did not get the whole request in time.",
    ),
    ResponseRule(
        statuses=(*range(300, 400), 401, 403, 404, 405, 415),
        kind=ResponseKind.UNAVAILABLE,
        reason="SendGrid does not serve this account or address as configured.",
    ),
    ResponseRule(
        statuses=(400,),
        field=r"personalizations\.\d+\.to\b.*",
        kind=ResponseKind.INVALID_RECIPIENT,
        reason="SendGrid does not take the recipient's address.",
    ),
    ResponseRule(
        statuses=(413,),
        kind=ResponseKind.PERMANENT,
        code=FailureCode.TOO_LARGE,
        reason="The message is larger than SendGrid takes.",
    ),
    ResponseRule(
        statuses=(400,), kind=ResponseKind.PERMANENT, reason="SendGrid refused the message."
    ),
)


@dataclass(frozen=True, kw_only=True)
class SendGrid:
    """A SendGrid account."""

    api_key: str = field(repr=False)
    base_url: str
    sender: str
    """``Name <address>``."""
    webhook_public_key: str
    clock: Callable[[], datetime]
    reply_to: str | None = None
    """``Name <address>`` that answers go to, unless a message says otherwise."""
    attachment_hosts: AbstractSet[str] = frozenset()
    """Hosts that attachments are fetched from; of no others."""
    name: str = "sendgrid"

    @cached_property
    def account(self) -> str:
        """The account whose health and rate the mails share."""
        return account_name(self.name, self.base_url, self.api_key)

    @cached_property
    def _sender(self) -> tuple[str, str]:
        return parseaddr(self.sender)

    def send(self, request: SendRequest, *, timeout: float) -> SendResult:
        """Hand one email to SendGrid; see :class:`providers.contract.Provider`."""
        return http_client.run_exchange(self.exchange(request, timeout=timeout))

    def is_non_blocking(self, request: SendRequest) -> bool:
        """Whether an email needs nothing but its own request: files are fetched first."""
        return not request.message.attachments

    def exchange(self, request: SendRequest, *, timeout: float) -> Exchange[SendResult]:
        """Ask for one email; see :class:`providers.contract.NonBlockingProvider`."""
        deadline = Deadline.after(timeout)
        attachments = request.message.attachments
        with fetch_attachments(attachments, hosts=self.attachment_hosts, timeout=timeout) as files:
            with _wrap_build_errors():
                body = msgspec.json.encode(self.body(request, files=files))
            result = yield from self._request_mail(body, (request,), deadline)
        outcome = result.outcome
        if isinstance(outcome, ProviderError):
            raise outcome
        return outcome

    def batch_key(self, message: Message) -> Hashable:
        """Return what is equal for mails that :meth:`send_many` may send together."""
        return batch_key(message)

    def send_many(
        self, requests: Sequence[SendRequest], *, timeout: float
    ) -> list[SendResult | ProviderError]:
        """Hand the same email for several personalizations to SendGrid; return what became of each.

        They are all one :meth:`batch_key`; raises ValueError if not, and nothing else. A thousand
        go in one request. All that share one with an unknown outcome have that outcome; if one of
        them is refused for itself, the others go without it, as far as ``timeout`` allows:
        :class:`providers.contract.NotAttemptedError` is what was left.
        """
        if len({self.batch_key(request.message) for request in requests}) > 1:
            raise ValueError("these are different mails")
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
            outcomes |= self._send_batch(personalizations, requests, tag, deadline)
        return [outcomes[number] for number in range(len(requests))]

    def body(self, request: SendRequest, *, files: Sequence[AttachmentFile] = ()) -> dict[str, Any]:
        """Return the JSON body of one email, as Python's objects."""
        return {
            **self._shared_body(request, files, None),
            "personalizations": [personalization(request, tag=None)],
        }

    def parse_receipts(self, headers: Mapping[str, str], raw: bytes) -> list[Receipt]:
        """Return the events of a webhook; raises InvalidSignatureError or ValueError."""
        webhooks.verify(headers, raw, public_key=self.webhook_public_key, now=self.clock())
        return webhooks.parse_receipts(raw)

    def _send_batch(
        self,
        personalizations: Mapping[int, msgspec.Raw],
        requests: Sequence[SendRequest],
        tag: SubstitutionTag,
        deadline: Deadline,
    ) -> dict[int, Outcome]:
        """Send to ``personalizations``, who are some of the recipients by their number."""
        first = requests[min(personalizations)]
        attachments = first.message.attachments
        try:
            with fetch_attachments(
                attachments, hosts=self.attachment_hosts, timeout=_time_left(deadline)
            ) as files:
                with _wrap_build_errors():
                    shared = msgspec.json.encode(self._shared_body(first, files, tag))

                def send(group: Sequence[int]) -> RequestResult:
                    body = _join_body(shared, [personalizations[n] for n in group])
                    group_requests = [requests[n] for n in group]
                    return http_client.run_exchange(
                        self._request_mail(body, group_requests, deadline)
                    )

                return send_bisecting(
                    _split_requests(
                        {number: requests[number].recipient for number in personalizations}
                    ),
                    send=send,
                    has_time=lambda: _time_left(deadline) >= MIN_REQUEST_SECONDS,
                )
        except ProviderError as error:
            # Of what they share: an attachment, a text that is none. Nothing has been sent.
            return dict.fromkeys(personalizations, error)

    def _request_mail(
        self, body: bytes, requests: Sequence[SendRequest], deadline: Deadline
    ) -> Exchange[RequestResult]:
        """Return what SendGrid makes of a body for these, if there is time for all of them."""
        timeout, now = _time_left(deadline), self.clock()
        if timeout <= 0 or any(is_expired(one, now=now) for one in requests):
            return RequestResult(outcome=NotAttemptedError())
        try:
            response = yield Request(
                url=f"{self.base_url}/v3/mail/send",
                body=body,
                headers={
                    "Authorization": f"Bearer {self.api_key}",
                    "Content-Type": "application/json",
                },
                timeout=timeout,
            )
        except ProviderError as error:
            return RequestResult(outcome=error)
        if response.status == ACCEPTED:
            message_id = response.headers.get("x-message-id", "")[:MAX_ID_LENGTH] or None
            provider_response = ProviderResponse(status=response.status)
            return RequestResult(
                outcome=SendResult(provider_id=message_id, response=provider_response)
            )
        return self._classify_refusal(response)

    def _classify_refusal(self, response: http.Response) -> RequestResult:
        fields = _error_fields(response)
        error = classify(
            RESPONSE_RULES,
            response=ProviderResponse(
                status=response.status,
                code=next(iter(fields), None),
                excerpt=response.excerpt,
            ),
            fields=fields,
            retry_after=self._parse_pause(response.headers),
        )
        is_message_level = fields and not any(f.startswith("personalizations") for f in fields)
        return RequestResult(
            outcome=error,
            can_bisect=response.status == BAD_REQUEST and not is_message_level,
        )

    def _shared_body(
        self, request: SendRequest, files: Sequence[AttachmentFile], tag: SubstitutionTag | None
    ) -> dict[str, Any]:
        return shared_body(
            request.message,
            sender=self._sender,
            default_reply_to=self.reply_to,
            files=files,
            tag=tag,
        )

    def _parse_pause(self, headers: Mapping[str, str]) -> float | None:
        """Return the pause SendGrid asks for: X-RateLimit-Reset is an epoch, else Retry-After."""
        reset = headers.get("x-ratelimit-reset", "")
        if webhooks.EPOCH.fullmatch(reset):
            return http.clamp_pause(int(reset) - self.clock().timestamp())
        return http.parse_retry_after(headers, now=self.clock())


def _time_left(deadline: Deadline) -> float:
    """Return the seconds that are left, none or less when it is over."""
    return deadline.at - time.monotonic()


@contextmanager
def _wrap_build_errors() -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise PermanentError(
            "The message cannot be made into a mail.", code=FailureCode.RENDER_FAILED
        ) from error


def _split_requests(addresses: Mapping[int, str]) -> Iterator[list[int]]:
    """Yield who goes into one request: at most a thousand, and each address once."""
    seen: Counter[str] = Counter()
    rounds: defaultdict[int, list[int]] = defaultdict(list)
    for number, address in addresses.items():
        rounds[seen[address.lower()]].append(number)
        seen[address.lower()] += 1
    for numbers in rounds.values():
        for start in range(0, len(numbers), MAX_RECIPIENTS):
            yield numbers[start : start + MAX_RECIPIENTS]


def _join_body(shared: bytes, personalizations: Sequence[msgspec.Raw]) -> bytes:
    """Return a whole body; what all share is encoded once, however often it is asked for."""
    return shared[:-1] + b',"personalizations":' + msgspec.json.encode(personalizations) + b"}"


def _error_fields(response: http.Response) -> list[str]:
    """Return the names of the fields SendGrid complains about, as far as its body is readable."""
    try:
        body = msgspec.json.decode(response.body)
    except (ValueError, RecursionError):
        return []
    errors = body.get("errors") if isinstance(body, dict) else None
    if not isinstance(errors, list):
        return []
    names = [error.get("field") for error in errors if isinstance(error, dict)]
    return [http.redact(name)[:MAX_ID_LENGTH] for name in names if isinstance(name, str)]
