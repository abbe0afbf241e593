"""Response times of the web while hundreds of slow clients hold connections."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import urllib3
from django.core.management import call_command

from notifyproject.stack import servers
from notifyproject.stack.running import Addresses, programs

from .. import environment, mail, posting
from ..environment import Bench
from ..figures import Figure, Progress, at_most
from .slow_clients import Kind, SlowClients, TargetServer

KINDS = {
    "sending": (Kind.SILENT, Kind.HEAD),
    "posting": (Kind.BODY, Kind.CHUNKED),
    "reading": (Kind.READER, Kind.IDLE),
    "all": tuple(Kind),
}
LARGE = "/static/drf_spectacular_sidecar/swagger-ui-dist/swagger-ui-bundle.js"
MAX_MILLISECONDS = 1_000
PAUSE = 0.05
"""Seconds between requests."""


def measure(bench: Bench, *, count: int, seconds: int, log_progress: Progress) -> Iterator[Figure]:
    """Measure the times of health checks and POSTs, each on a new connection."""
    call_command("collectstatic", interactive=False, verbosity=0)
    key = posting.create_key()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    with _run_web(bench) as port:
        url = f"http://{servers.HOST}:{port}"
        for name, kinds in KINDS.items():
            target = TargetServer(host=servers.HOST, port=port, large_path=LARGE)
            with SlowClients(target=target, kinds=kinds, count=count // len(kinds)) as clients:
                waits = _measure(url, headers=headers, seconds=seconds)
            log_progress(f"{name}: {clients.opened} connections were opened")
            for what, found in waits.items():
                for percent in (99, 100):
                    yield Figure(
                        key=f"slow {name}",
                        label=f"{what} beside {count} slow clients, p{percent} of {len(found)}",
                        unit="ms",
                        ours=1000 * found[min(len(found) * percent // 100, len(found) - 1)],
                        goals=(at_most(MAX_MILLISECONDS),),
                    )


@contextmanager
def _run_web(bench: Bench) -> Iterator[int]:
    """Run the web as the local stack does; yield its port."""
    port = servers.free_port()
    (web,) = [one for one in programs(Addresses(port=port), {}) if one.name == "web"]
    program = environment.program(bench, "slow", web.command)
    program.is_usable = lambda: not servers.is_free(port)
    with program.running():
        # gunicorn listens before its processes are ready.
        urllib3.request("GET", f"http://{servers.HOST}:{port}/healthz", timeout=60)
        yield port


def _measure(url: str, *, headers: dict[str, str], seconds: int) -> dict[str, list[float]]:
    body = json.dumps(mail.request_body(1)).encode()
    requests: dict[str, tuple[str, str, dict[str, Any]]] = {
        "GET /healthz": ("GET", "/healthz", {}),
        "POST": ("POST", posting.SINGLE_PATH, {"body": body, "headers": headers}),
    }
    waits: dict[str, list[float]] = {name: [] for name in requests}
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for what, found in waits.items():
            began = time.monotonic()
            method, path, options = requests[what]
            answer = urllib3.request(method, url + path, timeout=60, retries=False, **options)
            found.append(time.monotonic() - began)
            if answer.status >= 300:
                raise RuntimeError(f"{answer.status}: {answer.data[:500]!r}")
        time.sleep(PAUSE)
    return {what: sorted(found) for what, found in waits.items()}
