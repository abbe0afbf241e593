"""One trace from the client's request to the provider, across processes."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from bson import ObjectId

from domain.time import utc_now
from notifications import queries
from notifyproject.db.collections import collection
from notifyproject.platform import tracing
from notifyproject.platform.tracing import Kind, Span, otel
from notifyproject.platform.tracing.otel import OpenTelemetry
from notifyproject.stack.servers import free_port
from sandbox.assembly import Sandbox
from tests.support.clients.api import App, request
from tests.support.fakes.otel_collector import Collector, collecting
from tests.support.subprocess import python
from tests.support.waiting import ending

TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
SAMPLED, NOT_SAMPLED = f"00-{TRACE}-{CALLER}-01", f"00-{TRACE}-{CALLER}-00"
Stored = Callable[[Any], dict[str, Any]]


@pytest.fixture
def stored(db: None) -> Stored:
    return lambda answer: queries.get(notification_id=ObjectId(answer.json()["id"]))


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as collector:
        yield collector


@pytest.fixture
def traced(collector: Collector) -> Iterator[Callable[[], None]]:
    """Turn tracing on. The returned function flushes the spans."""
    tracer = OpenTelemetry(collector.url)
    tracing.set_tracer(tracer)
    yield tracer.shutdown
    tracing.set_tracer(None)
    tracer.shutdown()


def test_trace_runs_from_client_to_provider(
    app: App, provider: Sandbox, collector: Collector, traced: Callable[[], None]
) -> None:
    answer = app.post("/notifications", request(), headers={"traceparent": SAMPLED})
    traced()
    python(
        "-c",
        "import django; django.setup()\n"
        "from delivery import runtime, worker; worker.run_inline(runtime.SendingRuntime())",
        OTEL_EXPORTER_OTLP_ENDPOINT=collector.url,
        OTEL_SERVICE_NAME="our-worker",
        SENDGRID_URL=provider.url,
    )
    names = ("POST /api/v1/notifications", "deliver email", "send sendgrid")
    accepted, delivered, sent = spans = [collector.named(name) for name in names]
    assert {span.trace_id for span in spans} == {TRACE}
    parents = [CALLER, accepted.span_id, delivered.span_id]
    assert [span.parent_id for span in spans] == parents
    assert [span.kind for span in spans] == ["server", "consumer", "client"]
    assert [span.service for span in (accepted, sent)] == ["notifyproject", "our-worker"]
    assert accepted.ended <= delivered.began <= sent.began <= sent.ended <= delivered.ended
    assert not any(span.is_error for span in collector.spans)

    notification_id = answer.json()["id"]
    assert accepted.attributes == {
        "http.request.method": "POST",
        "http.route": "/api/v1/notifications",
        "http.response.status_code": 202,
        "notify.request.id": answer.headers["X-Request-Id"],
        "notify.notification.id": notification_id,
    }
    assert delivered.attributes == {
        "notify.notification.id": notification_id,
        "notify.channel": "email",
        "notify.type": "payment_confirmed",
        "notify.test": False,
        "notify.attempt": 1,
        "notify.provider": "sendgrid",
        "notify.delivery.status": "sent",
    }
    assert sent.attributes == {
        "notify.delivery.id": f"{notification_id}.email.1",
        "notify.provider": "sendgrid",
        "notify.provider.status": 202,
        "notify.outcome": "SendResult",
    }
    assert "example.com" not in str(collector.spans)
    assert "Sunrise" not in str(collector.spans)


def test_request_without_trace_starts_one(
    app: App, stored: Stored, collector: Collector, traced: Callable[[], None]
) -> None:
    answer, refused = app.notify(), app.notify(type="no_such_type")
    traced()
    accepted, other = collector.spans
    assert accepted.parent_id == other.parent_id == ""
    assert stored(answer)["traceparent"].startswith(f"00-{accepted.trace_id}-{accepted.span_id}-")
    assert other.attributes["http.response.status_code"] == refused.status_code == 422


def test_unsampled_trace_is_not_recorded(
    app: App, stored: Stored, collector: Collector, traced: Callable[[], None]
) -> None:
    answer = app.post("/notifications", request(), headers={"traceparent": NOT_SAMPLED})
    traced()
    assert "traceparent" not in stored(answer)
    assert collector.spans == []


def test_bulk_items_belong_to_the_requests_trace(
    app: App, collector: Collector, traced: Callable[[], None]
) -> None:
    items = [request(external_id=str(number)) for number in range(3)]
    headers = {"traceparent": SAMPLED, "Idempotency-Key": "many"}
    app.post("/notifications/bulk", {"notifications": items}, headers=headers)
    traced()
    call = collector.named("POST /api/v1/notifications/bulk")
    found = collection("notifications").distinct("traceparent")
    assert found == [f"00-{TRACE}-{call.span_id}-01"]


def test_tracing_off_imports_and_stores_nothing(app: App, stored: Stored) -> None:
    answer = app.post("/notifications", request(), headers={"traceparent": SAMPLED})
    assert "traceparent" not in stored(answer)
    found = python(
        "-c",
        "import sys\n"
        "sys.modules['opentelemetry'] = None  # as where it is not installed\n"
        "from notifyproject import wsgi\n"
        "import tasks.tasks\n"
        "ours = 'notifyproject.platform.tracing'\n"
        "print([name for name in sys.modules if name.startswith(ours)])",
    )
    package = "notifyproject.platform.tracing"
    assert found.strip() == str([package, f"{package}.middleware"])


def test_forked_process_exports_its_own_spans(collector: Collector) -> None:
    python(
        "-c",
        "import os, sys\n"
        "from notifyproject.platform import tracing; tracing.start()\n"
        "from notifyproject.platform.tracing import Kind, Span\n"
        "from domain.time import utc_now\n"
        "def record(name):\n"
        "    span = Span(name=name, kind=Kind.CLIENT, began_at=utc_now(), ended_at=utc_now())\n"
        f"    tracing.record(span, parent='{SAMPLED}')\n"
        "record('before')\n"
        "child = os.fork()\n"
        "record('parent' if child else 'child')\n"
        "sys.exit(0 if not child else os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))",
        OTEL_EXPORTER_OTLP_ENDPOINT=collector.url,
    )
    assert sorted(span.name for span in collector.spans) == ["before", "child", "parent"]
    assert {span.trace_id for span in collector.spans} == {TRACE}


def test_unavailable_collector_costs_only_spans(
    app: App, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otel, "TIMEOUT", 0.2)
    monkeypatch.setattr(otel, "SHUTDOWN_GRACE", 0.0)
    monkeypatch.setattr(otel, "MAX_QUEUE", 2 * otel.BATCH)
    tracer = OpenTelemetry(f"http://127.0.0.1:{free_port()}")
    tracing.set_tracer(tracer)
    try:
        assert stored(app.notify())["traceparent"]
        now = utc_now()
        span = Span(name="one", kind=Kind.CLIENT, began_at=now, ended_at=now)
        for _ in range(3 * otel.MAX_QUEUE):
            tracing.record(span, parent=SAMPLED)
    finally:
        tracing.set_tracer(None)
        with ending():
            tracer.shutdown()


def test_invalid_endpoint_is_a_warning(settings: Any) -> None:
    settings.OTEL_EXPORTER_OTLP_ENDPOINT = "collector:4318"
    (warning,) = tracing.check_settings()
    assert warning.id == "notifyproject.W002"


def test_missing_libraries_are_a_warning(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.OTEL_EXPORTER_OTLP_ENDPOINT = "http://127.0.0.1:4318"
    assert tracing.check_settings() == []
    monkeypatch.setattr(tracing, "LIBRARIES", ("no_such_library.sdk",))
    tracing.start()
    assert not tracing.is_on()
    (warning,) = tracing.check_settings()
    assert warning.id == "notifyproject.W001"
