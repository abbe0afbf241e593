"""Spans of requests, and of the work that follows later in other processes.

Without tracing, nothing is imported or stored. A span contains IDs and codes, never an address.
"""

import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import structlog
from django.conf import settings
from django.core import checks

if TYPE_CHECKING:
    from .otel import OpenTelemetry

log = structlog.get_logger(__name__)
LIBRARIES = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
Attributes = Mapping[str, str | int | bool]


class Kind(StrEnum):
    """Kind of a span."""

    CONSUMER = "consumer"
    """Asynchronous work."""
    CLIENT = "client"
    """A request to another service."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A finished operation."""

    name: str
    kind: Kind
    began_at: datetime
    ended_at: datetime
    attributes: Attributes = field(default_factory=dict)
    error: str | None = None
    children: Sequence["Span"] = ()


@dataclass(slots=True)
class _State:
    tracer: "OpenTelemetry | None" = None


_state = _State()


def start() -> None:
    """Enable tracing in this process and its forks, if it is configured and installed."""
    if settings.OTEL_EXPORTER_OTLP_ENDPOINT and is_installed():
        from .otel import OpenTelemetry

        set_tracer(OpenTelemetry(settings.OTEL_EXPORTER_OTLP_ENDPOINT))


def set_tracer(tracer: "OpenTelemetry | None") -> None:
    """Enable tracing, or disable it with None."""
    _state.tracer = tracer


def is_on() -> bool:
    """Return whether tracing is enabled. Check it before building a span."""
    return _state.tracer is not None


def record(span: Span, *, parent: str, link: str | None = None) -> None:
    """Record a span in the trace of ``parent``; ``link`` is a traceparent of another trace."""
    if _state.tracer is None:
        return
    try:
        _state.tracer.record(span, parent=parent, link=link)
    except Exception:
        # A failure of tracing must not stop the work.
        log.exception("span_dropped", span=span.name)


@contextmanager
def request_span(*, parent: str | None) -> Iterator[None]:
    """Trace a request. Errors of tracing are logged, not raised."""
    if _state.tracer is None:
        yield
        return
    with ExitStack() as request:
        try:
            request.enter_context(_state.tracer.request_span(parent=parent))
        except Exception:
            # An OpenTelemetry variable is invalid, so the next request would fail, too.
            log.exception("tracing_disabled")
            set_tracer(None)
        yield


def annotate(attributes: Attributes, *, name: str | None = None, error: str | None = None) -> None:
    """Add attributes to the span of the current request, if it is traced."""
    if _state.tracer is None:
        return
    try:
        _state.tracer.annotate(attributes, name=name, error=error)
    except Exception:
        log.exception("span_dropped", span=name)


def traceparent() -> str | None:
    """Return the traceparent of the current request, or None if it is not traced."""
    return None if _state.tracer is None else _state.tracer.traceparent()


def trace_id(parent: str | None) -> str | None:
    """Return the trace ID in a traceparent."""
    return parent.split("-")[1] if parent else None


def is_installed() -> bool:
    """Return whether OpenTelemetry is installed, without importing it."""
    try:
        return all(importlib.util.find_spec(name) is not None for name in LIBRARIES)
    except ModuleNotFoundError:
        return False


def check_settings(**_: Any) -> list[checks.CheckMessage]:
    """Check the endpoint of the collector: Django's system check."""
    endpoint = settings.OTEL_EXPORTER_OTLP_ENDPOINT
    if not endpoint:
        return []
    problems: list[checks.CheckMessage] = []
    if not is_installed():
        problems.append(
            checks.Warning(
                "OTEL_EXPORTER_OTLP_ENDPOINT is set, but OpenTelemetry is not installed: no traces "
                "are exported.",
                hint="pip install --require-hashes -r requirements-tracing.txt",
                id="notifyproject.W001",
            )
        )
    if not endpoint.startswith(("http://", "https://")):
        problems.append(
            checks.Warning(
                "OTEL_EXPORTER_OTLP_ENDPOINT is not a URL: every span is lost.",
                hint="It begins with http:// or https://, such as http://collector:4318.",
                id="notifyproject.W002",
            )
        )
    return problems
