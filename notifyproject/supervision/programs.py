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


def service_programs(choices: Choices) -> list[Program]:
    """Return the programs other than servers, all of which are forked."""
    gunicorn = [sys.executable, "-m", "gunicorn"]
    # Its control socket needs a thread, and a process with threads is no parent of web processes.
    options = ["--no-control-socket", "--logger-class", "notifyproject.serving.error_log.ErrorLog"]
    celery = [sys.executable, "-m", "celery"]
    if choices.is_terse:
        options += ["--log-level", "warning"]
        celery += ["-q"]
    celery += ["-A", "notifyproject"]
    worker = [
        *celery,
        "worker",
        "--loglevel=INFO",
        "--without-gossip",
        "--without-mingle",
        "--without-heartbeat",
    ]
    commands = {
        "web": [
            *gunicorn,
            "notifyproject.wsgi",
            *options,
            "--preload",
            "--worker-class=notifyproject.serving.worker.WebWorker",
            f"--bind={choices.web}",
            "--workers",
            str(choices.web_processes),
            "--threads=8",
            f"--graceful-timeout={choices.web_seconds}",
        ],
        "stream": [
            *gunicorn,
            "notifyproject.asgi",
            *options,
            "--worker-class=notifyproject.serving.stream_worker.StreamWorker",
            f"--bind={choices.stream}",
            "--workers",
            "1",
            f"--graceful-timeout={choices.stream_seconds}",
        ],
        "worker": [*worker, "--hostname", "worker@%h"],
        "urgent": [*worker, "--hostname", "urgent@%h", "--urgent"],
        "beat": [*celery, "beat", "--loglevel=WARNING", "--pidfile", ""],
    }
    return [
        Program(name=name, command=command, is_forked=True) for name, command in commands.items()
    ]
