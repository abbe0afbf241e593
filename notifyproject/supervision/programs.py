"""The service's programs, as one parent runs them: web, stream, workers, and beat."""

import sys
from dataclasses import dataclass

from .supervisor import Program


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What differs between installations."""

    web: str
    """Host and port of the web."""
    stream: str
    """Host and port of the stream."""
    web_processes: int
    web_seconds: int
    """Seconds for requests in progress, at a stop."""
    stream_seconds: int
    is_terse: bool
    """Whether the programs say little about their start."""


def service_programs(choices: Choices, *, urgent_queues: list[str]) -> list[Program]:
    """Return the programs other than servers, all of which are forked."""
    gunicorn = (sys.executable, "-m", "gunicorn")
    # Its control socket needs a thread, and a process with threads is no parent of web processes.
    common = (
        *("--no-control-socket", "--logger-class", "notifyproject.serving.error_log.ErrorLog"),
        *(("--log-level", "warning") if choices.is_terse else ()),
    )
    celery = (sys.executable, "-m", "celery", *(("-q",) if choices.is_terse else ()))
    worker = (
        *(*celery, "-A", "notifyproject", "worker", "--loglevel", "INFO"),
        *("--without-gossip", "--without-mingle", "--without-heartbeat"),
    )
    commands = {
        "web": (
            *(*gunicorn, "notifyproject.wsgi", *common),
            *("--worker-class", "notifyproject.serving.worker.WebWorker", "--preload"),
            *("--bind", choices.web, "--workers", str(choices.web_processes), "--threads", "8"),
            *("--graceful-timeout", str(choices.web_seconds)),
        ),
        "stream": (
            *(*gunicorn, "notifyproject.asgi", *common),
            *("--worker-class", "notifyproject.serving.stream_worker.StreamWorker"),
            *("--bind", choices.stream, "--workers", "1"),
            *("--graceful-timeout", str(choices.stream_seconds)),
        ),
        "worker": (*worker, "--hostname", "worker@%h"),
        "urgent": (*worker, "--hostname", "urgent@%h", "--queues", ",".join(urgent_queues)),
        "beat": (
            *(*celery, "-A", "notifyproject", "beat", "--loglevel", "WARNING"),
            *("--pidfile", ""),
        ),
    }
    return [
        Program(name=name, command=command, is_forked=True) for name, command in commands.items()
    ]
