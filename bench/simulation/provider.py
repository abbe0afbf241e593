"""An in-process provider of each channel: it accepts, refuses, and answers ambiguously, by seed."""

import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from domain.channels import Channel
from domain.errors import (
    FailureCode,
    InvalidRecipientError,
    PermanentError,
    ProviderResponse,
    ProviderUnavailableError,
    RecipientAction,
    TransientError,
)
from notifications.store.references import AttemptReference
from providers.contract import Receipt, ReceiptKind, SendRequest, SendResult
from providers.discovery import SPECS

from .ledger import Ledger

OUTAGE_EVERY, OUTAGE_LENGTH = timedelta(days=5), timedelta(hours=2)
"""Each provider is unavailable once in this time, for this long."""
MAX_RECEIPT_DELAY = timedelta(hours=6)
WHATSAPP_ID_ONLY = 0.5
"""Share of WhatsApp receipts that name only the provider's ID of the message."""


@dataclass(slots=True, kw_only=True)
class SimulatedProvider:
    """A provider of one channel."""

    channel: Channel
    seed: int
    clock: Callable[[], datetime]
    check_alive: Callable[[], None]
    ledger: Ledger
    receipts: list[tuple[datetime, int, Receipt]] = field(default_factory=list)
    """To be reported, a heap by time."""
    start: datetime
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    @property
    def name(self) -> str:
        """The name, as stored in attempts."""
        return next(spec.name for spec in SPECS.values() if spec.channel is self.channel)

    @property
    def account(self) -> str:
        """The account of the circuit breaker and the rate limit."""
        return f"{self.name}:{self.seed}"

    async def send(self, request: SendRequest, *, timeout: float) -> SendResult:
        """Accept or refuse a message, as its post and attempt decide."""
        self.check_alive()
        reference, now = AttemptReference.parse(request.reference), self.clock()
        if reference is None:
            raise PermanentError("No reference.", code=FailureCode.REJECTED)
        post = self.ledger.record_send(reference, text=request.message.text, now=now)
        if post is None:
            raise PermanentError("No post.", code=FailureCode.REJECTED)
        if self._is_out(now):
            raise ProviderUnavailableError("The simulated provider is out.")
        name = f"{self.seed}/{post.external_id}/{self.channel}"
        rng = random.Random(f"{name}/{reference.attempt_number}/{reference.device_id}")
        roll = rng.random()
        if roll < 0.03:
            raise TransientError("Busy.", code=FailureCode.PROVIDER_ERROR)
        if roll < 0.035:
            raise TransientError("Too fast.", code=FailureCode.RATE_LIMITED, retry_after=60)
        if roll < 0.06:
            raise PermanentError("Refused.", code=FailureCode.REJECTED)
        if roll < 0.062:
            raise InvalidRecipientError("Nobody.", action=RecipientAction.SUSPECT)
        if roll < 0.072:
            raise TransientError("No answer.", code=FailureCode.TIMEOUT, is_ambiguous=True)
        self.ledger.record_acceptance(post, reference, now=now)
        # The same for each attempt: a message that bounces once bounces again.
        self._plan_receipts(random.Random(name), reference, request, now)
        if roll < 0.09:
            raise TransientError("No answer.", code=FailureCode.TIMEOUT, is_ambiguous=True)
        return SendResult(provider_id=_message_id(reference), response=ProviderResponse(status=202))

    def due_receipts(self, now: datetime) -> list[Receipt]:
        """Remove and return the receipts whose time has come."""
        due = []
        while self.receipts and self.receipts[0][0] <= now:
            due.append(heapq.heappop(self.receipts)[2])
        return due

    def _is_out(self, now: datetime) -> bool:
        since = (now - self.start) + timedelta(days=list(Channel).index(self.channel) * 1.2)
        return since % OUTAGE_EVERY < OUTAGE_LENGTH and since >= OUTAGE_EVERY

    def _plan_receipts(
        self, rng: random.Random, reference: AttemptReference, request: SendRequest, now: datetime
    ) -> None:
        roll, delay = rng.random(), rng.random() ** 4 * MAX_RECEIPT_DELAY
        at = now + delay
        if roll < 0.04:
            kinds = [ReceiptKind.BOUNCED if roll < 0.002 else ReceiptKind.BLOCKED]
        elif roll < 0.75:
            kinds = [ReceiptKind.DELIVERED]
        else:
            kinds = []
        if kinds == [ReceiptKind.DELIVERED] and self.channel is not Channel.EMAIL:
            kinds += [ReceiptKind.READ] * (rng.random() < 0.3)
        is_nameless = self.channel is Channel.WHATSAPP and rng.random() < WHATSAPP_ID_ONLY
        for kind in kinds:
            receipt = Receipt(
                reference=None if is_nameless else str(reference),
                provider_id=_message_id(reference),
                kind=kind,
                at=at,
                reason=None,
                event_id=f"{reference}.{kind}",
                address=request.recipient,
            )
            # Some come twice, and some of a later event come first.
            for _ in range(2 if rng.random() < 0.05 else 1):
                late = timedelta(minutes=rng.choice((0, 0, 1, 5)))
                heapq.heappush(self.receipts, (at + late, next(self._numbers), receipt))


def _message_id(reference: AttemptReference) -> str:
    return f"m-{reference}"
