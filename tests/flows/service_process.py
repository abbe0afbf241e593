"""``python -m tests.flows.service_process PORT``: the service in a process of its own.

Serves the web application, and sends what is due in this process on ``POST /batch``: one program
is a web process or a worker, with caches that no other process shares.
"""

import sys
from collections.abc import Callable, Iterable
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from notifyproject.wsgi import application

HOST = "127.0.0.1"


class Server(ThreadingMixIn, WSGIServer):
    """Answers each connection in a thread of its own."""

    daemon_threads = True


class QuietHandler(WSGIRequestHandler):
    """Writes no line for each request."""

    def log_message(self, *args: Any) -> None:
        """Write nothing."""


def serve(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Send what is due, or answer as the web does."""
    if environ["PATH_INFO"] != "/batch":
        return application(environ, start_response)
    from notifications import working

    sent = working.deliver_here()
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(sent).encode()]


if __name__ == "__main__":
    with make_server(HOST, int(sys.argv[1]), serve, Server, QuietHandler) as server:
        print("ready", flush=True)
        server.serve_forever()
