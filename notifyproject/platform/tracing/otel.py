"""OpenTelemetry exporter: OTLP over HTTP to a collector, from a bounded queue that drops spans."""

import atexit
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import structlog
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from domain.time import utc_now

from . import Attributes, Kind, Span

log = structlog.get_logger(__name__)
DEFAULT_SERVICE_NAME = "notifyproject"
"""``service.name`` without OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES."""
MAX_QUEUE = 4_096
"""Spans of a process that wait for the collector. If there are more, the oldest are dropped."""
BATCH = 512
SCHEDULE_DELAY_MS = 2_000
TIMEOUT = 3.0
"""Seconds for a request to the collector, with its retries."""
SHUTDOWN_GRACE = 2.0
"""Seconds of a shutdown in which batches are still started."""
_KINDS = {Kind.CONSUMER: SpanKind.CONSUMER, Kind.CLIENT: SpanKind.CLIENT}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_propagator = TraceContextTextMapPropagator()


class OpenTelemetry:
    """Tracer. Each process or fork creates a queue, thread, and connection at its first span."""

    def __init__(self, endpoint: str) -> None:
        self._url = f"{endpoint.rstrip('/')}/v1/traces"
        self._locks: dict[int, threading.Lock] = {}
        self._pipelines: dict[int, _Pipeline] = {}
        atexit.register(self.shutdown)

    def record(self, span: Span, *, parent: str, link: str | None) -> None:
        """Record a span in the trace of ``parent``, a traceparent."""
        linked = trace.get_current_span(_context(link)).get_span_context()
        links = [trace.Link(linked)] if linked.is_valid else []
        self._export_span(span, _context(parent), links)

    @contextmanager
    def request_span(self, *, parent: str | None) -> Iterator[None]:
        """Trace a request; ``parent`` is its traceparent."""
        span = self._tracer().start_span(
            "request", context=_context(parent), kind=SpanKind.SERVER, start_time=_ns(utc_now())
        )
        try:
            # The text of an error may contain an address, so it is not recorded.
            with trace.use_span(span, record_exception=False, set_status_on_exception=False):
                yield
        finally:
            span.end(_ns(utc_now()))

    def annotate(self, attributes: Attributes, *, name: str | None, error: str | None) -> None:
        """Add attributes to the span of the current request, if there is one."""
        span = trace.get_current_span()
        span.set_attributes(dict(attributes))
        if name is not None:
            span.update_name(name)
        if error is not None:
            span.set_attribute("error.type", error)
            span.set_status(StatusCode.ERROR)

    def traceparent(self) -> str | None:
        """Return the traceparent of the current request, or None if it is not sampled."""
        if not trace.get_current_span().get_span_context().trace_flags.sampled:
            return None
        carrier: dict[str, str] = {}
        _propagator.inject(carrier)
        return carrier.get("traceparent")

    def shutdown(self) -> None:
        """Send the remaining spans of this process, for up to SHUTDOWN_GRACE seconds."""
        pipeline = self._pipelines.pop(os.getpid(), None)
        if pipeline is not None:
            pipeline.exporter.stop_soon()
            pipeline.provider.shutdown()

    def _export_span(self, span: Span, context: Context, links: Sequence[trace.Link] = ()) -> None:
        error = {} if span.error is None else {"error.type": span.error}
        started = self._tracer().start_span(
            span.name,
            context=context,
            kind=_KINDS[span.kind],
            attributes={**span.attributes, **error},
            links=links,
            start_time=_ns(span.began_at),
        )
        if span.error is not None:
            started.set_status(StatusCode.ERROR)
        for child in span.children:
            self._export_span(child, trace.set_span_in_context(started, Context()))
        started.end(_ns(span.ended_at))

    def _tracer(self) -> trace.Tracer:
        pid = os.getpid()
        pipeline = self._pipelines.get(pid)
        if pipeline is None:
            # One lock for each process: a lock held during a fork is never released.
            with self._locks.setdefault(pid, threading.Lock()):
                pipeline = self._pipelines.get(pid) or _start_pipeline(self._url)
                self._pipelines[pid] = pipeline
        return pipeline.tracer


class _BoundedExporter(SpanExporter):
    """Exporter that logs once when spans are dropped, and does not delay a shutdown."""

    def __init__(self, inner: SpanExporter) -> None:
        self._inner = inner
        self._is_failing = False
        self._stops_at = float("inf")

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send spans. Called by one thread."""
        if time.monotonic() >= self._stops_at:
            return SpanExportResult.FAILURE
        result = self._inner.export(spans)
        is_failing = result is not SpanExportResult.SUCCESS
        if is_failing and not self._is_failing:
            log.warning("spans_dropped", first=len(spans))
        if self._is_failing and not is_failing:
            log.info("span_export_resumed")
        self._is_failing = is_failing
        return result

    def stop_soon(self) -> None:
        """Start no further batch after SHUTDOWN_GRACE seconds."""
        self._stops_at = time.monotonic() + SHUTDOWN_GRACE

    def shutdown(self) -> None:
        """Close the connection."""
        self._inner.shutdown()


@dataclass(frozen=True, slots=True)
class _Pipeline:
    exporter: _BoundedExporter
    provider: TracerProvider
    tracer: trace.Tracer


def _start_pipeline(url: str) -> _Pipeline:
    exporter = _BoundedExporter(OTLPSpanExporter(endpoint=url, timeout=TIMEOUT))
    resource = Resource.create()
    if str(resource.attributes[SERVICE_NAME]).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: DEFAULT_SERVICE_NAME}))
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(
        BatchSpanProcessor(
            exporter,
            max_queue_size=MAX_QUEUE,
            max_export_batch_size=BATCH,
            schedule_delay_millis=SCHEDULE_DELAY_MS,
        )
    )
    return _Pipeline(exporter, provider, provider.get_tracer(DEFAULT_SERVICE_NAME))


def _context(traceparent: str | None) -> Context:
    """Return the context of a traceparent. An invalid one starts a new trace."""
    return _propagator.extract({"traceparent": traceparent or ""}, context=Context())


def _ns(instant: datetime) -> int:
    """Return nanoseconds since the epoch, without rounding by a float."""
    return (instant - _EPOCH) // timedelta(microseconds=1) * 1_000
