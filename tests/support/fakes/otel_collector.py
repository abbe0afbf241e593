"""An OpenTelemetry collector over HTTP."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status


@dataclass(frozen=True, kw_only=True)
class Export:
    """A received span."""

    service: str
    name: str
    kind: str
    trace_id: str
    span_id: str
    parent_id: str
    attributes: dict[str, Any]
    is_error: bool
    links: list[str]
    """Ids of linked spans."""
    began: int
    ended: int
    """Nanoseconds since the epoch."""


@dataclass
class Collector:
    url: str = ""
    requests: list[str] = field(default_factory=list)
    """Paths."""
    spans: list[Export] = field(default_factory=list)

    def named(self, name: str) -> Export:
        (found,) = [span for span in self.spans if span.name == name]
        return found

    def take(self, path: str, body: bytes) -> None:
        self.requests.append(path)
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            service = next(a for a in resource.resource.attributes if a.key == "service.name")
            for scope in resource.scope_spans:
                self.spans += [_export(span, service.value.string_value) for span in scope.spans]


@contextmanager
def collecting() -> Iterator[Collector]:
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # the name is http.server's
            collector.take(self.path, self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield collector
        finally:
            server.shutdown()
            thread.join()


def _export(span: Span, service: str) -> Export:
    return Export(
        service=service,
        name=span.name,
        kind=Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_").lower(),
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        attributes={attribute.key: _value(attribute.value) for attribute in span.attributes},
        is_error=span.status.code == Status.STATUS_CODE_ERROR,
        links=[link.span_id.hex() for link in span.links],
        began=span.start_time_unix_nano,
        ended=span.end_time_unix_nano,
    )


def _value(value: AnyValue) -> Any:
    return getattr(value, value.WhichOneof("value") or "string_value")
