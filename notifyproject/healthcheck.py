"""``manage.py healthcheck PROGRAM …``: whether the programs of this container work.

A program with a port answers ``/healthz``. The others write the time to a file in HEARTBEAT_DIR,
so that the check needs no host name, broker, or database: a dependency that is down never makes
all containers restart. The module imports neither Django's apps nor Celery, because it runs every
few seconds beside each program.
"""

import argparse
import os
import time
from collections.abc import Sequence
from contextlib import closing
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from .settings import environment

PORTS = {"web": 8000, "stream": 8002}
"""Ports in the image, by program."""
HEARTBEATS = ("worker", "beat", "sweeper")
"""Programs that write a heartbeat file."""
MAX_AGE = 60.0
"""Seconds after which a heartbeat is missing. Programs write one every few seconds; beat takes
longest, up to half a minute, while the broker is down."""
ROUNDING = 0.001
"""Seconds by which a written time may be ahead."""
TIMEOUT = 1.5
"""Seconds for a program's response."""


def main(arguments: Sequence[str]) -> str | None:
    """Check programs. Return why one is unhealthy, or None."""
    parser = argparse.ArgumentParser(
        prog="manage.py healthcheck", description="Exit with 0 if the programs here are healthy."
    )
    parser.add_argument("programs", nargs="+", choices=(*PORTS, *HEARTBEATS))
    parser.add_argument("--port", type=int, help="of web (8000) or stream (8002)")
    options = parser.parse_args(arguments)
    try:
        settings = environment.current()
    except ImproperlyConfigured as error:
        return " ".join(str(error).split())
    for program in options.programs:
        if program in PORTS:
            port = options.port or PORTS[program]
            problem = http_problem(port=port, host=_allowed_host(settings.ALLOWED_HOSTS))
        else:
            directory = settings.HEARTBEAT_DIR
            problem = heartbeat_problem(program, directory=directory, now=time.monotonic())
        if problem is not None:
            return problem
    return None


def write_heartbeat(program: str, *, directory: str, now: float) -> None:
    """Record that a program works. Raises OSError. Without a directory, nothing is recorded.

    ``now`` is of the monotonic clock, which is one for all processes, and which NTP doesn't move.
    """
    if not directory:
        return
    path = _heartbeat_path(program, directory)
    # Renamed, because a check may read at any time.
    new = path.with_suffix(".new")
    new.write_text(f"{now:.3f} {os.getpid()}\n")
    new.replace(path)


def heartbeat_problem(program: str, *, directory: str, now: float) -> str | None:
    """Return why a program's heartbeat doesn't show that it works, or None."""
    if not directory:
        return "Set HEARTBEAT_DIR: without it, no program writes a heartbeat."
    path = _heartbeat_path(program, directory)
    try:
        age = now - float(path.read_text().split()[0])
    except FileNotFoundError:
        return f"The {program} has written no heartbeat to {path}: it hasn't started yet."
    except (OSError, ValueError, IndexError) as error:
        return f"The heartbeat {path} can't be read: {type(error).__name__}."
    # A written time is rounded to milliseconds.
    if age < -ROUNDING:
        return f"The heartbeat {path} is from before the machine started."
    if age > MAX_AGE:
        return f"The last heartbeat of the {program} was {age:.0f} s ago."
    return None


def http_problem(*, port: int, host: str, timeout: float | None = None) -> str | None:
    """Return why a program doesn't answer ``/healthz`` with 200, or None."""
    deadline = time.monotonic() + (timeout or TIMEOUT)
    address = f"127.0.0.1:{port}"
    with closing(HTTPConnection("127.0.0.1", port, timeout=timeout or TIMEOUT)) as connection:
        try:
            connection.connect()
            connection.sock.settimeout(max(deadline - time.monotonic(), 0.001))
            connection.request("GET", "/healthz", headers={"Host": host})
            status = connection.getresponse().status
        except ConnectionRefusedError:
            return f"Nothing listens on {address}."
        except (OSError, HTTPException) as error:
            return f"{address} gave no response in time: {type(error).__name__}."
    return None if status == HTTPStatus.OK else f"{address} responded with {status}."


def _allowed_host(names: Sequence[str]) -> str:
    """Return a host name from ALLOWED_HOSTS. Django answers requests for other hosts with 400."""
    return names[0].removeprefix(".") if names else "127.0.0.1"


def _heartbeat_path(program: str, directory: str) -> Path:
    return Path(directory, f"{program}.heartbeat")
