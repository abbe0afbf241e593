"""Servers and processes of a benchmark: on free ports, in a folder of their own, stopped by pid."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

from notifyproject.settings.environment import BASE_DIR
from notifyproject.stack import servers

from . import sinks

PRODUCTION_LOGGING = {"LOG_LEVEL": "INFO", "LOG_FORMAT": "json"}
"""Programs log as they do in production; only this one is quiet."""
READY_SECONDS = 60
STOP_SECONDS = 30


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A running set of servers; this process and its children are configured for them."""

    folder: Path
    mongod_port: int
    mongod_pid: int
    http: sinks.HTTPSink

    @property
    def mongodb_uri(self) -> str:
        """The URI of the database that is used at present."""
        return os.environ["MONGODB_URI"]

    @contextmanager
    def database(self, name: str) -> Iterator[None]:
        """Have this process and its children use another database: empty, and gone afterwards."""
        from django.core.management import call_command

        from notifyproject.db.collections import database

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
        """Have this process and its children use a database that is there; hints are forgotten."""
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
        """Return an empty folder."""
        return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.folder))


@contextmanager
def run_environment() -> Iterator[Bench]:
    """Run mongod, Valkey and the sinks, and set Django up in this process."""
    folder = Path(tempfile.mkdtemp(prefix="notifyproject-bench-"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        mongod = servers.mongod(data_dir=folder / "mongod", port=servers.free_port())
        valkey = servers.valkey(data_dir=folder / "valkey", port=servers.free_port())
        http = sinks.HTTPSink(folder=folder / "nginx", port=servers.free_port())
        smtp = sinks.smtp_sink(folder=folder / "smtp-sink", port=servers.free_port())
        for server in (mongod, valkey, http.server(), smtp):
            stack.callback(server.stop)
            server.start()
        servers.make_primary(mongod.port)
        os.environ.update(
            {
                "DJANGO_SETTINGS_MODULE": "notifyproject.settings.local",
                "MONGODB_URI": servers.mongodb_uri(mongod.port, "unused"),
                "REDIS_URL": servers.valkey_url(valkey.port),
                "SENDGRID_URL": http.url,
                "SMTP_HOST": servers.HOST,
                "SMTP_PORT": str(smtp.port),
                "LOG_LEVEL": "WARNING",
            }
        )
        import django

        django.setup()
        yield Bench(folder=folder, mongod_port=mongod.port, mongod_pid=_pid_of(mongod), http=http)


def _pid_of(server: servers.Server) -> int:
    if server.process is None:
        raise RuntimeError(f"{server.name} has ended")
    return server.process.pid


@contextmanager
def run_process(
    command: Sequence[str], *, log: Path, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program of ours for a while; what it prints goes to ``log``."""
    with log.open("ab") as output:
        started = subprocess.Popen(
            command,
            cwd=BASE_DIR,
            env={**os.environ, **PRODUCTION_LOGGING, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # Ctrl-C is for this process, which then stops each of its own.
            start_new_session=True,
            preexec_fn=servers.die_with_parent,
        )
    try:
        yield started
    finally:
        started.terminate()
        try:
            started.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait()


@contextmanager
def run_worker(
    bench: Bench, *, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a Celery worker as the stack does, and wait until it takes tasks."""
    with run_workers(bench, processes=1, environment=environment) as (started,):
        yield started


@contextmanager
def run_workers(
    bench: Bench, *, processes: int, environment: Mapping[str, str] | None = None
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Run so many Celery workers side by side, and wait until all take tasks."""
    from notifyproject.celery import app

    log = bench.folder / "worker.log"
    with ExitStack() as stack:
        started = []
        for number in range(processes):
            command = [
                *(sys.executable, "-m", "celery", "-q", "-A", "notifyproject", "worker"),
                *("-l", "WARNING", "-n", f"bench-{number}@%h"),
                *("--without-gossip", "--without-mingle", "--without-heartbeat"),
            ]
            worker = run_process(command, log=log, environment=environment)
            started.append(stack.enter_context(worker))

        def all_answer() -> bool:
            return len(app.control.ping(timeout=0.5, limit=processes)) == processes

        wait_for(all_answer, started[0], log)
        yield started


@contextmanager
def run_web(
    bench: Bench,
    application: str,
    *,
    processes: int = 1,
    environment: Mapping[str, str] | None = None,
) -> Iterator[tuple[list[int], str]]:
    """Run gunicorn with eight threads in each process; yield the processes' ids and the URL."""
    port = servers.free_port()
    command = [
        *(sys.executable, "-m", "gunicorn", application, "--bind", f"{servers.HOST}:{port}"),
        *("--worker-class", "notifyproject.serving.worker.WebWorker"),
        *("--workers", str(processes), "--threads", "8"),
        *("--log-level", "warning", "--keep-alive", "60"),
    ]
    log = bench.folder / "web.log"
    with run_process(command, log=log, environment=environment) as started:

        def is_ready() -> bool:
            return len(children(started.pid)) == processes and not servers.is_free(port)

        wait_for(is_ready, started, log)
        yield children(started.pid), f"http://{servers.HOST}:{port}"


def wait_for(
    condition: Callable[[], bool],
    started: subprocess.Popen[bytes] | None = None,
    log: Path | None = None,
    *,
    timeout: float = READY_SECONDS,
    pause: float = 0.05,
) -> None:
    """Wait until something is so; raises RuntimeError if the process ends or time runs out."""
    deadline = time.monotonic() + timeout
    while not condition():
        ended = started is not None and started.poll() is not None
        if ended or time.monotonic() > deadline:
            output = log.read_text(errors="replace")[-2_000:] if log else ""
            raise RuntimeError(f"{'it ended' if ended else 'it takes too long'}\n{output}")
        time.sleep(pause)


def run_program(bench: Bench, module: str, *arguments: str) -> dict[str, Any]:
    """Run one of the benchmark's own programs and return the JSON it prints last."""
    log = bench.folder / f"{module}.log"
    log.unlink(missing_ok=True)
    with run_process([sys.executable, "-m", f"bench.{module}", *arguments], log=log) as started:
        wait_for(lambda: started.poll() is not None, timeout=1_800)
        lines = log.read_text(errors="replace").splitlines()
        if started.returncode:
            raise RuntimeError("\n".join(lines[-30:]))
        return json.loads(lines[-1])


def children(pid: int) -> list[int]:
    """Return the processes that a process has started."""
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()]


def cpu_seconds(*pids: int) -> float:
    """Return the processor time that processes have used, in them and in the kernel for them."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def resident_megabytes(pid: int) -> float:
    """Return the memory a process occupies."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "VmRSS":
            return int(value.split()[0]) / 1024
    raise RuntimeError(f"process {pid} has no memory any more")
