"""``manage.py service``: all programs of a small installation, forked from one parent."""

import argparse
import os
from collections.abc import Sequence

from . import loading
from .forking import UnsafeForkError
from .output import InheritedOutput
from .programs import Choices, service_programs
from .supervisor import ProgramFailedError, Supervisor

STOP_SECONDS = 27.0
"""Seconds for the programs in which to end at a stop. Compose kills the container after 30."""
WEB_SECONDS, STREAM_SECONDS = 20, 5


def main(arguments: Sequence[str]) -> str | None:
    """Run until SIGTERM or SIGINT. Return what failed, or None."""
    parser = argparse.ArgumentParser(
        prog="manage.py service",
        description="Run web, stream, workers, and beat, which share the memory of their code.",
    )
    parser.add_argument("--web", default="0.0.0.0:8000", help="host and port of the web")
    parser.add_argument("--stream", default="0.0.0.0:8002", help="host and port of the stream")
    parser.add_argument("--web-processes", type=int, default=1)
    options = parser.parse_args(arguments)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "notifyproject.settings.production")
    choices = Choices(
        web=options.web,
        stream=options.stream,
        web_processes=options.web_processes,
        web_seconds=WEB_SECONDS,
        stream_seconds=STREAM_SECONDS,
        is_terse=False,
    )
    supervisor = Supervisor(output=InheritedOutput(), stop_seconds=STOP_SECONDS)
    try:
        loading.load()
        for program in service_programs(choices):
            supervisor.start(program)
        supervisor.run()
    except (ProgramFailedError, UnsafeForkError) as problem:
        return str(problem)
    return None
