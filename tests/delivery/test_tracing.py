"""What became of a delivery is told to its own trace, in ids and codes alone."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId

from delivery import dispatcher
from domain.states import Channel
from notifications.receipts import processor
from notifyproject.platform import tracing
from notifyproject.platform.tracing import Attributes, Span
from providers.contract import Receipt, ReceiptKind
from tests.support.factories import push as pushing
from tests.support.factories.notifications import NOON, accepted, device
from tests.support.fakes.provider import (
    Behaviour,
    ScriptedProvider,
    by_recipient,
    provider_error,
    refused,
    timeout,
)
from tests.support.fakes.provider import accepted as taken
from tests.support.mongo.query_plans import plans

pytestmark = pytest.mark.usefixtures("db", "broker")

WEBHOOK = f"00-{'a' * 32}-{'b' * 16}-01"
MINUTE = timedelta(minutes=1)
Use = Callable[..., ScriptedProvider]


@dataclass
class Told:
    """Who is told of spans, and was answering a webhook all the while."""

    spans: list[tuple[str, Span]] = field(default_factory=list)
    """Each with the traceparent it belongs to."""
    links: list[str | None] = field(default_factory=list)

    def record(self, span: Span, *, parent: str, link: str | None) -> None:
        self.spans.append((parent, span))
        self.links.append(link)

    @contextmanager
    def serving(self, *, caller: str | None) -> Iterator[None]:
        yield

    def note(self, attributes: Attributes, *, name: str | None, error: str | None) -> None:
        pass

    def traceparent(self) -> str | None:
        return WEBHOOK

    def one(self) -> Span:
        """Return the only span."""
        ((_, span),) = self.spans
        return span


@pytest.fixture
def told() -> Iterator[Told]:
    """Turn traces on, to somebody who remembers them."""
    told = Told()
    tracing.set_tracer(told)
    yield told
    tracing.set_tracer(None)


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Use:
    """Give a test a way to say which provider serves every channel."""

    def install(behave: Behaviour | None = None) -> ScriptedProvider:
        provider = ScriptedProvider(behave)
        monkeypatch.setattr(dispatcher, "providers_for", lambda _channel, **_: (provider,))
        return provider

    return install


def parent(number: int) -> str:
    return f"00-{number:032x}-{number:016x}-01"


def traced(number: int = 1, **fields: Any) -> ObjectId:
    notification_id: ObjectId = accepted(traceparent=parent(number), **fields)["_id"]
    return notification_id


def deliver(*ids: ObjectId, after: timedelta = timedelta(0)) -> None:
    dispatcher.dispatch(ids, channel=Channel.EMAIL, clock=lambda: NOON + after)


def status(span: Span) -> tuple[Any, str | None]:
    return span.attributes["notify.delivery.status"], span.error


def test_each_delivery_of_a_batch_is_told_to_its_own_trace(use: Use, told: Told) -> None:
    use()
    ids = [traced(number) for number in (1, 2, 3)]
    deliver(*ids, accepted()["_id"])
    assert {(where, span.attributes["notify.notification.id"]) for where, span in told.spans} == {
        (parent(number), str(one)) for number, one in enumerate(ids, start=1)
    }


@pytest.mark.parametrize(
    ("outcome", "becomes", "said"),
    [
        (provider_error, "pending", ("provider_error", "TransientError")),
        (timeout, "unknown", ("timeout", "TransientError")),
        (refused, "failed", ("rejected", "PermanentError")),
    ],
)
def test_an_attempt_that_came_to_nothing_is_an_error(
    use: Use, told: Told, outcome: Callable[[], Any], becomes: str, said: tuple[str, str]
) -> None:
    use(lambda _outbound: outcome())
    deliver(traced())
    assert status(told.one()) == (becomes, said[0])
    (request,) = told.one().children
    assert (request.error, request.attributes["notify.outcome"]) == said


def test_every_try_is_a_span_of_the_same_trace(use: Use, told: Told) -> None:
    outcomes = iter([provider_error(), taken()])
    use(lambda _outbound: next(outcomes))
    one = traced()
    deliver(one)
    deliver(one, after=7 * MINUTE)
    assert [where for where, _ in told.spans] == [parent(1)] * 2
    assert [span.attributes["notify.attempt"] for _, span in told.spans] == [1, 2]
    assert [status(span) for _, span in told.spans] == [
        ("pending", "provider_error"),
        ("sent", None),
    ]


def test_each_device_is_a_request_of_its_own(fcm: ScriptedProvider, told: Told) -> None:
    phone, tablet = device("phone"), device("tablet")
    fcm.behave = by_recipient({"tablet": refused})
    one = pushing.push(traceparent=parent(1))
    pushing.deliver(one)
    assert {
        (request.attributes["notify.delivery.id"], request.error) for request in told.one().children
    } == {(f"{one}.push.1.{phone}", None), (f"{one}.push.1.{tablet}", "rejected")}


def test_what_ends_untried_is_told_and_what_waits_is_not(use: Use, told: Told) -> None:
    use()
    late = traced(expires_at=NOON + MINUTE)
    deliver(late, after=2 * MINUTE)
    assert status(told.one()) == ("expired", None)
    assert told.one().attributes["notify.reason"] == "expired"


def test_a_report_is_told_to_the_trace_and_linked_to_its_webhook(use: Use, told: Told) -> None:
    use()
    ids = [traced(1), traced(2), accepted()["_id"]]
    deliver(*ids)
    told.spans.clear()
    told.links.clear()
    reported_at = NOON + 2 * MINUTE
    kinds = (ReceiptKind.DELIVERED, ReceiptKind.BOUNCED, ReceiptKind.DELIVERED)
    events = [
        Receipt(
            reference=f"{one}.email.1",
            provider_id=None,
            kind=kind,
            at=NOON + MINUTE,
            reason=None,
            event_id=str(one),
            address="ada@example.com",
        )
        for one, kind in zip(ids, kinds, strict=True)
    ]
    with plans("notifications") as found:
        processor.apply_receipts(events, provider="sendgrid", now=reported_at)
    assert [(where, span.name, span.error) for where, span in told.spans] == [
        (parent(1), "receipt delivered", None),
        (parent(2), "receipt bounced", "bounced"),
    ]
    assert told.links == [WEBHOOK, WEBHOOK]
    assert all(span.ended_at - span.began_at == MINUTE for _, span in told.spans)
    (asked,) = [plan for plan in found if "traceparent" in str(plan.command.get("projection"))]
    assert asked.is_by_id

    processor.apply_receipts(events, provider="sendgrid", now=reported_at)
    assert len(told.spans) == 2, "what was reported before is not told again"


def test_no_span_holds_an_address_or_a_text(use: Use, told: Told) -> None:
    use(lambda _outbound: refused())
    deliver(traced())
    everything = str(told.spans)
    for secret in ("ada", "example.com", "+351912345678", "Your payment"):
        assert secret not in everything


def test_who_takes_spans_may_fail_and_the_delivery_is_sent(
    use: Use, told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("the watcher is ill")

    monkeypatch.setattr(told, "record", fail)
    use()
    report = dispatcher.dispatch([traced()], channel=Channel.EMAIL, clock=lambda: NOON)
    assert report.counts == {"sent": 1}
