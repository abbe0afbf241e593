"""Servers and processes of a benchmark, on free ports and in a folder of their own."""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from notifyproject.settings.environment import BASE_DIR
from notifyproject.stack import servers

READY_SECONDS = 60


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A running set of servers; ``environment`` is set for this process and its children."""

    folder: Path
    environment: Mapping[str, str]
    sink_port: int


@contextmanager
def running() -> Iterator[Bench]:
    """Run mongod, Valkey and the sink, migrate, and set Django up in this process."""
    folder = Path(tempfile.mkdtemp(prefix="notifyproject-bench-"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        mongod = servers.mongod(data_dir=folder / "mongod", port=servers.free_port())
        valkey = servers.valkey(data_dir=folder / "valkey", port=servers.free_port())
        for server in (mongod, valkey):
            server.start()
            stack.callback(server.stop)
        servers.make_primary(mongod.port)
        sink_port = servers.free_port()
        environment = {
            "DJANGO_SETTINGS_MODULE": "notifyproject.settings.local",
            "MONGODB_URI": servers.mongodb_uri(mongod.port, "bench"),
            "REDIS_URL": servers.valkey_url(valkey.port),
            "SENDGRID_URL": f"http://{servers.HOST}:{sink_port}",
            "LOG_LEVEL": "WARNING",
        }
        os.environ.update(environment)
        stack.enter_context(process([sys.executable, "-m", "bench.sink", str(sink_port)]))
        import django

        django.setup()
        from django.core.management import call_command

        call_command("migrate", verbosity=0)
        yield Bench(folder=folder, environment=environment, sink_port=sink_port)


@contextmanager
def process(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process of ours for a while."""
    started = subprocess.Popen(
        command, cwd=BASE_DIR, env=os.environ, preexec_fn=servers.die_with_parent
    )
    try:
        yield started
    finally:
        started.terminate()
        try:
            started.wait(10)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()


@contextmanager
def worker(*, name: str = "bench") -> Iterator[subprocess.Popen[bytes]]:
    """Run a Celery worker as the stack does, and wait until it takes tasks."""
    from notifyproject.celery import app

    command = [
        *(sys.executable, "-m", "celery", "-A", "notifyproject", "worker", "-l", "WARNING"),
        *("-n", f"{name}@%h", "--without-gossip", "--without-mingle", "--without-heartbeat"),
    ]
    with process(command) as started:
        deadline = time.monotonic() + READY_SECONDS
        while not app.control.ping(timeout=0.5):
            if time.monotonic() > deadline:
                raise TimeoutError("the worker does not answer")
        yield started


def machine() -> str:
    """Return what this runs on, for committed results."""
    return (
        f"{os.cpu_count()} cores, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}"
    )
