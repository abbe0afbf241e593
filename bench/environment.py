"""The servers and programs of a benchmark, on free ports and in a temporary folder."""

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import redis

from notifyproject.db.collections import database
from notifyproject.stack import servers

from . import sinks
from .processes import Program, web_command, worker_command

PRODUCTION_LOGGING = {"LOG_LEVEL": "INFO", "LOG_FORMAT": "json"}
"""The programs log as in production; this process is quiet."""
READY_SECONDS = 60


@dataclass(frozen=True, kw_only=True)
class Bench:
    """The running servers of a benchmark, to which this process and its children connect."""

    folder: Path
    mongod_port: int
    mongod_pid: int
    valkey_pid: int
    http: sinks.HTTPSink

    @property
    def mongodb_uri(self) -> str:
        """The URI of the current database."""
        return os.environ["MONGODB_URI"]

    @contextmanager
    def database(self, name: str) -> Iterator[None]:
        """Switch this process and its children to an empty database; drop it afterwards."""
        from django.core.management import call_command

        before = self.mongodb_uri
        self.use_database(name)
        try:
            call_command("migrate", verbosity=0)
            yield
        finally:
            self.use_database(name)
            database().client.drop_database(name)
            self.use_database(before.rpartition("/")[2].partition("?")[0])

    def use_database(self, name: str) -> None:
        """Switch this process and its children to a database; flush the broker."""
        from django.conf import settings
        from django.contrib.contenttypes.models import ContentType
        from django.db import connection

        os.environ["MONGODB_URI"] = servers.mongodb_uri(self.mongod_port, name)
        connection.settings_dict["NAME"] = name
        connection.ensure_connection()
        connection.init_connection_state()
        ContentType.objects.clear_cache()
        with redis.Redis.from_url(settings.REDIS_URL) as valkey:
            valkey.flushdb()

    def fresh_folder(self, name: str) -> Path:
        """Return a new empty folder, which is removed after the benchmark."""
        return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.folder))


@contextmanager
def run_environment() -> Iterator[Bench]:
    """Run mongod, Valkey, and the mail sinks, and set up Django in this process."""
    with ExitStack() as stack:
        folder = stack.enter_context(_temporary_folder())
        http = sinks.HTTPSink(folder=folder / "nginx", port=servers.free_port())
        smtp = sinks.smtp_sink(folder=folder / "smtp-sink", port=servers.free_port())
        for server in (http.server(), smtp):
            stack.callback(server.stop)
            server.start()
        os.environ.update(SENDGRID_URL=http.url, SMTP_HOST=servers.HOST, SMTP_PORT=str(smtp.port))
        yield stack.enter_context(_run_databases(folder, http, "WARNING"))


@contextmanager
def run_databases(*, log_level: str = "WARNING") -> Iterator[Bench]:
    """Run mongod and Valkey alone, and set up Django in this process."""
    with _temporary_folder() as folder:
        http = sinks.HTTPSink(folder=folder / "nginx", port=servers.free_port())
        with _run_databases(folder, http, log_level) as bench:
            yield bench


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="notifyproject-bench-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _run_databases(folder: Path, http: sinks.HTTPSink, log_level: str) -> Iterator[Bench]:
    with ExitStack() as stack:
        # The cache has MongoDB's default size, as in production. In a small one, evictions of
        # changed pages are half of its work.
        mongod = servers.mongod(
            data_dir=folder / "mongod", port=servers.free_port(), cache_gigabytes=None
        )
        valkey = servers.valkey(data_dir=folder / "valkey", port=servers.free_port())
        for server in (mongod, valkey):
            stack.callback(server.stop)
            server.start()
        servers.make_primary(mongod.port)
        os.environ.update(
            DJANGO_SETTINGS_MODULE="notifyproject.settings.local",
            MONGODB_URI=servers.mongodb_uri(mongod.port, "unused"),
            REDIS_URL=servers.valkey_url(valkey.port),
            LOG_LEVEL=log_level,
        )
        import django

        django.setup()
        if mongod.process is None or valkey.process is None:
            raise RuntimeError("mongod or Valkey has ended")
        yield Bench(
            folder=folder,
            mongod_port=mongod.port,
            mongod_pid=mongod.process.pid,
            valkey_pid=valkey.process.pid,
            http=http,
        )


def program(
    bench: Bench, name: str, command: Sequence[str], environment: Mapping[str, str] | None = None
) -> Program:
    """Return a program that isn't started yet, with the log format of production."""
    return Program(
        name=name,
        command=command,
        environment={**PRODUCTION_LOGGING, **(environment or {})},
        log=bench.folder / f"{name}.log",
    )


@contextmanager
def run_workers(
    bench: Bench, *, processes: int = 1, environment: Mapping[str, str] | None = None
) -> Iterator[list[Program]]:
    """Run Celery workers as the stack does; the block begins when all of them take tasks."""
    from notifyproject.celery import app

    with ExitStack() as stack:
        workers = []
        for name in (f"bench-{number}" for number in range(processes)):
            command = worker_command(name, "-l", "WARNING")
            workers.append(program(bench, name, command, environment=environment))
            stack.enter_context(workers[-1].running())
        ping = partial(app.control.ping, timeout=0.5, limit=processes)
        workers[0].is_usable = lambda: len(ping()) == processes
        workers[0].wait_ready(timeout=READY_SECONDS)
        yield workers


@contextmanager
def run_web(
    bench: Bench,
    application: str,
    *,
    processes: int = 1,
    environment: Mapping[str, str] | None = None,
) -> Iterator[tuple[list[int], str]]:
    """Run a WSGI application with gunicorn; yield the worker process IDs and the URL."""
    port = servers.free_port()
    address, options = f"{servers.HOST}:{port}", ("--log-level", "warning", "--keep-alive", "60")
    command = web_command(application, address, processes=processes, options=options)
    web = program(bench, "web", command, environment=environment)
    web.is_usable = lambda: len(web.children()) == processes and not servers.is_free(port)
    with web.running(timeout=READY_SECONDS):
        yield web.children(), f"http://{address}"


def run_program(
    bench: Bench, module: str, *arguments: object, environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Run a module of this package as a program; return its last output line, parsed as JSON."""
    command = [sys.executable, "-m", f"bench.{module}", *map(str, arguments)]
    child = program(bench, module, command, environment)
    child.log.unlink(missing_ok=True)
    child.start()
    try:
        child.wait_ended(timeout=1_800)
    finally:
        child.terminate()
    lines = child.log.read_text(errors="replace").splitlines()
    if child.process is None or child.process.returncode:
        raise RuntimeError("\n".join(lines[-30:]))
    return json.loads(lines[-1])
