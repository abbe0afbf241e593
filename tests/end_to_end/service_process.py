"""``python -m tests.end_to_end.service_process COUNT``: the service in several processes.

Each process serves the web application, and delivers due work on ``POST /batch``. The program forks
after its imports, which take seconds. Each process writes its port to standard output.
"""

import os
import sys
from collections.abc import Callable, Iterable
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from notifyproject.supervision.forking import die_with_parent
from notifyproject.wsgi import application

HOST = "127.0.0.1"


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class QuietHandler(WSGIRequestHandler):
    def log_message(self, *args: Any) -> None:
        pass


def serve(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Deliver due work, or call the web application."""
    if environ["PATH_INFO"] != "/batch":
        return application(environ, start_response)
    from delivery import worker
    from delivery.runtime import SendingRuntime

    sent = worker.run_inline(SendingRuntime())
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [str(sent).encode()]


def main(count: int) -> None:
    """Serve in this process and in ``count - 1`` children, which end with it."""
    for _ in range(count - 1):
        if os.fork() == 0:
            die_with_parent()
            break
    with make_server(HOST, 0, serve, Server, QuietHandler) as server:
        # In one write: the pipe is shared.
        os.write(sys.stdout.fileno(), b"%d\n" % server.server_port)
        server.serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]))
