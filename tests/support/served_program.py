"""A program of the local stack that serves HTTP."""

import socket
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import urllib3

from notifyproject.stack.servers import HOST
from tests.support.clients.slow import TargetServer
from tests.support.waiting import LIMIT

LARGE = "/static/drf_spectacular_sidecar/swagger-ui-dist/swagger-ui-bundle.js"
"""1.6 MB, without authentication."""


@dataclass(frozen=True, kw_only=True)
class Served:
    port: int
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def target(self) -> TargetServer:
        return TargetServer(host=HOST, port=self.port, large_path=LARGE)

    def connect(self) -> socket.socket:
        return socket.create_connection((HOST, self.port), timeout=LIMIT)

    def is_healthy(self) -> bool:
        try:
            answer = urllib3.request("GET", f"{self.url}/healthz", retries=False, timeout=LIMIT)
        except urllib3.exceptions.HTTPError:
            return False
        return answer.status == 200


Serve = Callable[..., Served]
