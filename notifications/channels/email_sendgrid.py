"""Email by SendGrid's v3 API.

``sendgrid`` verifies webhooks; its own transport is not used: it has no timeout, follows redirects
with the key, and opens a connection for every request.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parseaddr
from functools import cached_property
from typing import Any

import msgspec

from notifyproject.outside.deadlines import Deadline

from ..errors import Answer, FailureCode, PermanentError, ProviderError
from . import email_sendgrid_bodies as bodies
from . import email_sendgrid_webhooks as webhooks
from . import http, transfers
from .answers import Kind, Rule, classify
from .base import Message, NotTried, Outbound, Receipt, SendResult, account_of, is_over
from .email_sendgrid_bodies import Tag
from .email_sendgrid_halves import Outcome, Verdict, ask_in_halves
from .http import Exchange, Request
from .mail_attachments import File, fetched

ACCEPTED = 202
REFUSED = 400
MAX_RECIPIENTS = 1_000
"""Of one request."""
SHORTEST = 2.0
"""Seconds that must be left for another request for a part of a batch."""
MAX_ID_LENGTH = 200
"""An id or field name of SendGrid's is kept up to this length; they are shorter."""

ANSWERS: Sequence[Rule] = (
    Rule(
        statuses=(429,),
        kind=Kind.TRANSIENT,
        code=FailureCode.RATE_LIMITED,
        reason="SendGrid wants fewer requests.",
    ),
    Rule(
        statuses=(408,),
        kind=Kind.TRANSIENT,
        code=FailureCode.PROVIDER_ERROR,
        reason="SendGrid did not get the whole request in time.",
    ),
    Rule(
        statuses=(*range(300, 400), 401, 403, 404, 405, 415),
        kind=Kind.UNAVAILABLE,
        reason="SendGrid does not serve this account or address as configured.",
    ),
    Rule(
        statuses=(400,),
        field=r"personalizations\.\d+\.to\b.*",
        kind=Kind.INVALID_RECIPIENT,
        reason="SendGrid does not take the recipient's address.",
    ),
    Rule(
        statuses=(413,),
        kind=Kind.PERMANENT,
        code=FailureCode.TOO_LARGE,
        reason="The message is larger than SendGrid takes.",
    ),
    Rule(statuses=(400,), kind=Kind.PERMANENT, reason="SendGrid refused the message."),
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
        return account_of(self.name, self.base_url, self.api_key)

    @cached_property
    def _sender(self) -> tuple[str, str]:
        return parseaddr(self.sender)

    def send(self, outbound: Outbound, *, timeout: float) -> SendResult:
        """Hand one email to SendGrid; see :class:`notifications.channels.base.Channel`."""
        return transfers.finish(self.exchange(outbound, timeout=timeout))

    def is_all_talk(self, outbound: Outbound) -> bool:
        """Whether an email needs nothing but its own request: files are fetched first."""
        return not outbound.message.attachments

    def exchange(self, outbound: Outbound, *, timeout: float) -> Exchange[SendResult]:
        """Ask for one email; see :class:`notifications.channels.base.Talking`."""
        deadline = Deadline.after(timeout)
        attachments = outbound.message.attachments
        with fetched(attachments, hosts=self.attachment_hosts, timeout=timeout) as files:
            with _making_a_mail():
                body = msgspec.json.encode(self.body(outbound, files=files))
            verdict = yield from self._asked(body, (outbound,), deadline)
        outcome = verdict.outcome
        if isinstance(outcome, ProviderError):
            raise outcome
        return outcome

    def same_mail(self, message: Message) -> Hashable:
        """Return what is equal for mails that :meth:`send_many` may send together."""
        return bodies.same_mail(message)

    def send_many(
        self, outbounds: Sequence[Outbound], *, timeout: float
    ) -> list[SendResult | ProviderError]:
        """Hand the same email for several people to SendGrid; return what became of each.

        They are all one :meth:`same_mail`; raises ValueError if not, and nothing else. A thousand
        go in one request. All that share one with an unknown outcome have that outcome; if one of
        them is refused for itself, the others go without it, as far as ``timeout`` allows:
        :class:`.base.NotTried` is what was left.
        """
        if len({self.same_mail(outbound.message) for outbound in outbounds}) > 1:
            raise ValueError("these are different mails")
        deadline = Deadline.after(timeout)
        tag = Tag.new()
        outcomes: dict[int, Outcome] = {}
        people: dict[int, msgspec.Raw] = {}
        for number, outbound in enumerate(outbounds):
            try:
                with _making_a_mail():
                    own = bodies.own(outbound, tag=tag)
                    people[number] = msgspec.Raw(msgspec.json.encode(own))
            except PermanentError as error:
                outcomes[number] = error
        if people:
            outcomes |= self._send_to(people, outbounds, tag, deadline)
        return [outcomes[number] for number in range(len(outbounds))]

    def body(self, outbound: Outbound, *, files: Sequence[File] = ()) -> dict[str, Any]:
        """Return the JSON body of one email, as Python's objects."""
        return {
            **self._shared(outbound, files, None),
            "personalizations": [bodies.own(outbound, tag=None)],
        }

    def parse_receipts(self, headers: Mapping[str, str], raw: bytes) -> list[Receipt]:
        """Return the events of a webhook; raises InvalidSignature or ValueError."""
        webhooks.verify(headers, raw, public_key=self.webhook_public_key, now=self.clock())
        return webhooks.receipts_of(raw)

    def _send_to(
        self,
        people: Mapping[int, msgspec.Raw],
        outbounds: Sequence[Outbound],
        tag: Tag,
        deadline: Deadline,
    ) -> dict[int, Outcome]:
        """Send to ``people``, who are some of the recipients by their number."""
        first = outbounds[min(people)]
        attachments = first.message.attachments
        try:
            with fetched(
                attachments, hosts=self.attachment_hosts, timeout=_left(deadline)
            ) as files:
                with _making_a_mail():
                    shared = msgspec.json.encode(self._shared(first, files, tag))

                def ask(group: Sequence[int]) -> Verdict:
                    body = _joined(shared, [people[n] for n in group])
                    some = [outbounds[n] for n in group]
                    return transfers.finish(self._asked(body, some, deadline))

                return ask_in_halves(
                    _requests({number: outbounds[number].recipient for number in people}),
                    ask=ask,
                    has_time=lambda: _left(deadline) >= SHORTEST,
                )
        except ProviderError as error:
            # Of what they share: an attachment, a text that is none. Nothing has been sent.
            return dict.fromkeys(people, error)

    def _asked(
        self, body: bytes, outbounds: Sequence[Outbound], deadline: Deadline
    ) -> Exchange[Verdict]:
        """Return what SendGrid makes of a body for these, if there is time for all of them."""
        timeout, now = _left(deadline), self.clock()
        if timeout <= 0 or any(is_over(one, now=now) for one in outbounds):
            return Verdict(outcome=NotTried())
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
            return Verdict(outcome=error)
        if response.status == ACCEPTED:
            message_id = response.headers.get("x-message-id", "")[:MAX_ID_LENGTH] or None
            answer = Answer(status=response.status)
            return Verdict(outcome=SendResult(provider_id=message_id, answer=answer))
        return self._refusal(response)

    def _refusal(self, response: http.Response) -> Verdict:
        fields = _fields(response)
        error = classify(
            ANSWERS,
            answer=Answer(
                status=response.status,
                code=next(iter(fields), None),
                excerpt=response.excerpt,
            ),
            fields=fields,
            retry_after=self._pause(response.headers),
        )
        is_about_all = fields and not any(f.startswith("personalizations") for f in fields)
        return Verdict(
            outcome=error,
            is_about_a_recipient=response.status == REFUSED and not is_about_all,
        )

    def _shared(self, outbound: Outbound, files: Sequence[File], tag: Tag | None) -> dict[str, Any]:
        return bodies.shared(
            outbound.message,
            sender=self._sender,
            default_reply_to=self.reply_to,
            files=files,
            tag=tag,
        )

    def _pause(self, headers: Mapping[str, str]) -> float | None:
        """Return the pause SendGrid asks for: X-RateLimit-Reset is an epoch, else Retry-After."""
        reset = headers.get("x-ratelimit-reset", "")
        if webhooks.EPOCH.fullmatch(reset):
            return http.bounded_pause(int(reset) - self.clock().timestamp())
        return http.retry_after(headers, now=self.clock())


def _left(deadline: Deadline) -> float:
    """Return the seconds that are left, none or less when it is over."""
    return deadline.at - time.monotonic()


@contextmanager
def _making_a_mail() -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise PermanentError(
            "The message cannot be made into a mail.", code=FailureCode.RENDER_FAILED
        ) from error


def _requests(addresses: Mapping[int, str]) -> Iterator[list[int]]:
    """Yield who goes into one request: at most a thousand, and each address once."""
    seen: Counter[str] = Counter()
    rounds: defaultdict[int, list[int]] = defaultdict(list)
    for number, address in addresses.items():
        rounds[seen[address.lower()]].append(number)
        seen[address.lower()] += 1
    for numbers in rounds.values():
        for start in range(0, len(numbers), MAX_RECIPIENTS):
            yield numbers[start : start + MAX_RECIPIENTS]


def _joined(shared: bytes, people: Sequence[msgspec.Raw]) -> bytes:
    """Return a whole body; what all share is encoded once, however often it is asked for."""
    return shared[:-1] + b',"personalizations":' + msgspec.json.encode(people) + b"}"


def _fields(response: http.Response) -> list[str]:
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
