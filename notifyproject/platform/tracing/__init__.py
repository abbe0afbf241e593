"""Traces: what was asked for, and what came of it minutes and processes later, as one picture.

Off, this module is all there is of it: no library is imported, nothing is stored. On, spans go to a
collector by OpenTelemetry; nobody but :mod:`.otel` knows that library, the others say what happened
in the words of this module. A span holds ids and codes, never an address or a text.
"""

import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

import structlog
from django.conf import settings
from django.core import checks

log = structlog.get_logger(__name__)
LIBRARIES = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
"""What requirements-tracing.txt adds."""
Attributes = Mapping[str, str | int | bool]


class Kind(StrEnum):
    """Which side of a conversation a span is."""

    CONSUMER = "consumer"
    """Work that was left for later."""
    CLIENT = "client"
    """Asking somebody else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Something that is over: from when until when, and how it ended."""

    name: str
    kind: Kind
    began_at: datetime
    ended_at: datetime
    attributes: Attributes = field(default_factory=dict)
    error: str | None = None
    """The code of what went wrong; None if nothing did."""
    children: Sequence["Span"] = ()


class Tracer(Protocol):
    """Who takes spans, while traces are on."""

    def record(self, span: Span, *, parent: str, link: str | None) -> None:
        """Take a span of the trace that ``parent``, a traceparent, belongs to."""
        ...

    @contextmanager
    def request_span(self, *, parent: str | None) -> Iterator[None]:
        """Make a span of what is done inside; ``caller`` is the traceparent it came with."""
        ...

    def annotate(self, attributes: Attributes, *, name: str | None, error: str | None) -> None:
        """Say more of the request that is being answered, if there is one."""
        ...

    def traceparent(self) -> str | None:
        """Return what the request that is being answered is known by; None if nobody looks."""
        ...


@dataclass(slots=True)
class _State:
    tracer: Tracer | None = None


_state = _State()


def start() -> None:
    """Turn traces on in this process and those it forks, if they are wanted and can be made."""
    if settings.OTEL_EXPORTER_OTLP_ENDPOINT and is_installed():
        from .otel import OpenTelemetry

        set_tracer(OpenTelemetry(settings.OTEL_EXPORTER_OTLP_ENDPOINT))


def set_tracer(tracer: Tracer | None) -> None:
    """Turn traces on, or with None off."""
    _state.tracer = tracer


def is_on() -> bool:
    """Return whether anybody wants to know: ask before you put a span together."""
    return _state.tracer is not None


def record(span: Span, *, parent: str, link: str | None = None) -> None:
    """Hand over a span that belongs to the trace of ``parent``; ``link`` names another one's."""
    if _state.tracer is None:
        return
    try:
        _state.tracer.record(span, parent=parent, link=link)
    except Exception:
        # Who watches the work does not stop it.
        log.exception("span_dropped", span=span.name)


@contextmanager
def request_span(*, parent: str | None) -> Iterator[None]:
    """Make a span of a request; raises nothing of its own."""
    if _state.tracer is None:
        yield
        return
    with ExitStack() as request:
        try:
            request.enter_context(_state.tracer.request_span(parent=parent))
        except Exception:
            # It cannot use something in its environment: the next request would fare no better.
            log.exception("tracing_disabled")
            set_tracer(None)
        yield


def annotate(attributes: Attributes, *, name: str | None = None, error: str | None = None) -> None:
    """Say more of the request that is being answered, if it is traced."""
    if _state.tracer is None:
        return
    try:
        _state.tracer.annotate(attributes, name=name, error=error)
    except Exception:
        log.exception("span_dropped", span=name)


def traceparent() -> str | None:
    """Return what the request that is being answered is known by; None if it is not traced."""
    return None if _state.tracer is None else _state.tracer.traceparent()


def trace_id(parent: str | None) -> str | None:
    """Return the trace that a traceparent belongs to: what people look it up by."""
    return parent.split("-")[1] if parent else None


def is_installed() -> bool:
    """Return whether the libraries are there; to look for them imports no part of them."""
    try:
        return all(importlib.util.find_spec(name) is not None for name in LIBRARIES)
    except ModuleNotFoundError:
        return False


def check_settings(**_: Any) -> list[checks.CheckMessage]:
    """Warn of an endpoint that nothing can be sent to."""
    endpoint = settings.OTEL_EXPORTER_OTLP_ENDPOINT
    if not endpoint:
        return []
    problems: list[checks.CheckMessage] = []
    if not is_installed():
        problems.append(
            checks.Warning(
                "OTEL_EXPORTER_OTLP_ENDPOINT is set, and there are no traces: OpenTelemetry is "
                "not installed.",
                hint="pip install -r requirements-tracing.txt",
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
