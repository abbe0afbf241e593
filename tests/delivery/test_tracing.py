"""Tracing of deliveries: spans in the trace of each notification, without personal data."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId

from delivery import pipeline
from delivery.runtime import SendingRuntime
from domain.channels import Channel
from notifications.receipts import processor
from notifyproject.platform import tracing
from notifyproject.platform.tracing import Attributes, Span
from providers.contract import Receipt, ReceiptKind
from tests.support.factories import push as pushing
from tests.support.factories.notifications import NOON, accepted, device
from tests.support.fakes.provider import (
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


@dataclass
class RecordingTracer:
    """A tracer that records spans during a webhook request."""

    spans: list[tuple[str, Span]] = field(default_factory=list)
    """Spans with their parent traceparents."""
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
        ((_, span),) = self.spans
        return span


@pytest.fixture
def tracer() -> Iterator[RecordingTracer]:
    tracer = RecordingTracer()
    tracing.set_tracer(tracer)
    yield tracer
    tracing.set_tracer(None)


def parent(number: int) -> str:
    return f"00-{number:032x}-{number:016x}-01"


def traced(number: int = 1, **fields: Any) -> ObjectId:
    notification_id: ObjectId = accepted(traceparent=parent(number), **fields)["_id"]
    return notification_id


def deliver(*ids: ObjectId, after: timedelta = timedelta(0)) -> None:
    pipeline.dispatch(SendingRuntime(), ids, channel=Channel.EMAIL, clock=lambda: NOON + after)


def status(span: Span) -> tuple[Any, str | None]:
    return span.attributes["notify.delivery.status"], span.error


def test_each_delivery_has_its_own_trace(fcm: ScriptedProvider, tracer: RecordingTracer) -> None:
    ids = [traced(number) for number in (1, 2, 3)]
    deliver(*ids, accepted()["_id"])
    assert {(where, span.attributes["notify.notification.id"]) for where, span in tracer.spans} == {
        (parent(number), str(notification_id))
        for number, notification_id in enumerate(ids, start=1)
    }


@pytest.mark.parametrize(
    ("outcome", "status_", "expected"),
    [
        (provider_error, "pending", ("provider_error", "TransientError")),
        (timeout, "unknown", ("timeout", "TransientError")),
        (refused, "failed", ("rejected", "PermanentError")),
    ],
)
def test_failed_attempt_has_an_error_span(
    fcm: ScriptedProvider,
    tracer: RecordingTracer,
    outcome: Callable[[], Any],
    status_: str,
    expected: tuple[str, str],
) -> None:
    fcm.behave = lambda _outbound: outcome()
    deliver(traced())
    assert status(tracer.one()) == (status_, expected[0])
    (request,) = tracer.one().children
    assert (request.error, request.attributes["notify.outcome"]) == expected


def test_attempts_share_a_trace(fcm: ScriptedProvider, tracer: RecordingTracer) -> None:
    outcomes = iter([provider_error(), taken()])
    fcm.behave = lambda _outbound: next(outcomes)
    notification_id = traced()
    deliver(notification_id)
    deliver(notification_id, after=7 * MINUTE)
    assert [where for where, _ in tracer.spans] == [parent(1)] * 2
    assert [span.attributes["notify.attempt"] for _, span in tracer.spans] == [1, 2]
    assert [status(span) for _, span in tracer.spans] == [
        ("pending", "provider_error"),
        ("sent", None),
    ]


def test_each_device_has_a_request_span(fcm: ScriptedProvider, tracer: RecordingTracer) -> None:
    phone, tablet = device("phone"), device("tablet")
    fcm.behave = by_recipient({"tablet": refused})
    notification_id = pushing.push(traceparent=parent(1))
    pushing.deliver(notification_id)
    assert {
        (request.attributes["notify.delivery.id"], request.error)
        for request in tracer.one().children
    } == {
        (f"{notification_id}.push.1.{phone}", None),
        (f"{notification_id}.push.1.{tablet}", "rejected"),
    }


def test_unsent_delivery_has_a_span(fcm: ScriptedProvider, tracer: RecordingTracer) -> None:
    deliver(traced(expires_at=NOON + MINUTE), after=2 * MINUTE)
    assert status(tracer.one()) == ("expired", None)
    assert tracer.one().attributes["notify.reason"] == "expired"


@pytest.mark.usefixtures("mail")
def test_receipt_is_linked_to_its_webhook(tracer: RecordingTracer) -> None:
    ids = [traced(1), traced(2), accepted()["_id"]]
    deliver(*ids)
    tracer.spans.clear()
    tracer.links.clear()
    reported_at = NOON + 2 * MINUTE
    kinds = (ReceiptKind.DELIVERED, ReceiptKind.BOUNCED, ReceiptKind.DELIVERED)
    events = [
        Receipt(
            reference=f"{notification_id}.email.1",
            provider_id=None,
            kind=kind,
            at=NOON + MINUTE,
            reason=None,
            event_id=str(notification_id),
            address="ada@example.com",
        )
        for notification_id, kind in zip(ids, kinds, strict=True)
    ]
    with plans("notifications") as found:
        processor.apply_receipts(events, provider="sendgrid", now=reported_at)
    assert [(where, span.name, span.error) for where, span in tracer.spans] == [
        (parent(1), "receipt delivered", None),
        (parent(2), "receipt bounced", "bounced"),
    ]
    assert tracer.links == [WEBHOOK, WEBHOOK]
    assert all(span.ended_at - span.began_at == MINUTE for _, span in tracer.spans)
    (plan_,) = [plan for plan in found if "traceparent" in str(plan.command.get("projection"))]
    assert plan_.is_by_id

    processor.apply_receipts(events, provider="sendgrid", now=reported_at)
    assert len(tracer.spans) == 2, "a repeated receipt has no span"


def test_spans_hold_no_address_or_text(fcm: ScriptedProvider, tracer: RecordingTracer) -> None:
    fcm.behave = lambda _outbound: refused()
    deliver(traced())
    everything = str(tracer.spans)
    # As a word: an ID can contain the letters of a name.
    for secret in (r"\bada\b", r"example\.com", r"351912345678", "Your payment"):
        assert not re.search(secret, everything)


def test_tracer_failure_does_not_stop_the_delivery(
    fcm: ScriptedProvider, tracer: RecordingTracer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("the tracer failed")

    monkeypatch.setattr(tracer, "record", fail)
    report = pipeline.dispatch(
        SendingRuntime(), [traced()], channel=Channel.EMAIL, clock=lambda: NOON
    )
    assert report.counts == {"sent": 1}
