"""A whole installation of this run's own: servers, sandbox, web, workers, beat, on free ports."""

import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import redis
import urllib3
from pymongo import MongoClient
from pymongo.database import Database

from notifyproject.stack import servers
from notifyproject.stack.servers import HOST, Server
from sandbox import assembly

from .evidence import Kill
from .load import Client
from .processes import Program
from .replicas import ReplicaSet
from .watching import StepRecorder

DATABASE = "chaos"
SCOPES = (
    *("notifications:write", "notifications:read", "notifications:resend"),
    *("recipients:write", "devices:write"),
)
SECRET_KEY = "only-for-fault-injection-" + "0" * 40
PYTHON = sys.executable
Variables = Mapping[str, str]


@dataclass(kw_only=True)
class Installation:
    """What a scenario has to work with."""

    folder: Path
    environment: Variables
    mongo: ReplicaSet
    valkey: Server
    broker: redis.Redis
    sandbox: Program
    url: str
    """Where the web listens."""
    client: Client
    watcher: StepRecorder
    database: Database[dict[str, Any]]
    programs: list[Program] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)

    def program(
        self, name: str, *command: str, ready_text: str = "", environment: Variables | None = None
    ) -> Program:
        """Return a program of the installation that is not started yet; it ends with the stand."""
        program = Program(
            name=name,
            command=[PYTHON, *command],
            environment={**self.environment, **(environment or {})},
            log=self.folder / f"{name}.log",
            ready_text=ready_text,
        )
        self.programs.append(program)
        return program

    def web(self, name: str = "web", *, port: int | None = None) -> Program:
        """Return the web as it is run: gunicorn with two processes of eight threads."""
        url = f"http://{HOST}:{port}" if port else self.url
        web = self.program(
            name,
            *("-m", "gunicorn", "notifyproject.wsgi", "--bind", url.removeprefix("http://")),
            *("--worker-class", "notifyproject.serving.worker.WebWorker"),
            *("--workers", "2", "--threads", "8", "--graceful-timeout", "20"),
        )
        web.is_usable = lambda: _is_healthy(url)
        return web

    def worker(self, name: str = "worker", *, queues: str = "") -> Program:
        """Return a Celery worker as it is run; of all queues, or of these."""
        return self.program(
            name,
            *("-m", "celery", "-q", "-A", "notifyproject", "worker", "--hostname", f"{name}@%h"),
            *("--without-gossip", "--without-mingle", "--without-heartbeat"),
            *(("--queues", queues) if queues else ()),
            ready_text=f"{name}@{socket.gethostname()} ready",
        )

    def beat(self, name: str = "beat") -> Program:
        """Return beat as it is run."""
        return self.program(
            name,
            *("-m", "celery", "-q", "-A", "notifyproject", "beat", "--pidfile", ""),
            ready_text="beat: Starting",
        )

    def sweeper(self, name: str = "sweeper", *options: str) -> Program:
        """Return a process that sweeps without beat."""
        return self.program(name, "manage.py", "sweeper", *options, ready_text="woken ")

    def start(self, *programs: Program, **environment: str) -> None:
        """Start programs side by side and wait until each is ready."""
        for one in programs:
            one.start(**environment)
        for one in programs:
            one.wait_ready()

    def kill(self, program: Program) -> None:
        """Kill a program outright, and remember when."""
        self.record_end(program)
        program.kill()

    def record_end(self, program: Program) -> None:
        """Remember that a program ends now, by whatever means."""
        worker = f"{socket.gethostname()}:{program.pid}"
        self.kills.append(Kill(worker=worker, at=datetime.now(UTC)))

    def kill_all(self) -> None:
        """End every program of the service."""
        for one in self.programs:
            one.kill()

    def open_count(self) -> int:
        """Return how many notifications are not final."""
        return self.database["notifications"].count_documents({"due_at": {"$exists": True}})

    def wait_final(self, *, timeout: float, restarted: Sequence[Program] = ()) -> float:
        """Wait until every notification is final; return the seconds that took, or ``timeout``.

        ``restarted``: programs that are started again if they end by themselves.
        """
        started = time.monotonic()
        while self.open_count() and time.monotonic() < started + timeout:
            for ended in (one for one in restarted if not one.is_alive):
                self.record_end(ended)
                self.start(ended)
            time.sleep(0.5)
        return min(time.monotonic() - started, timeout)

    def script_outcome(self, recipient: str, outcome: str) -> None:
        """Tell the provider what becomes of messages to a recipient."""
        answer = urllib3.request(
            "PUT",
            f"{self.environment['SANDBOX_URL']}/_sandbox/behaviours/{recipient}",
            json={"outcome": outcome},
            timeout=10,
        )
        if answer.status >= 300:
            raise RuntimeError(f"the sandbox refused a script: {answer.data!r}")


@contextmanager
def run_installation(
    *,
    members: int = 1,
    webhooks: bool = True,
    sandbox_options: tuple[str, ...] = (),
    environment: Variables | None = None,
) -> Iterator[Installation]:
    """Bring up servers, sandbox and database; programs of the service are for the scenario.

    ``members``: of the replica set. ``webhooks``: the provider reports to the web, or not at all.
    """
    folder = Path(tempfile.mkdtemp(prefix="notifyproject-chaos-"))
    with ExitStack() as stack:
        if not os.environ.get("CHAOS_KEEP"):
            stack.callback(shutil.rmtree, folder, ignore_errors=True)
        mongo = ReplicaSet(folder=folder, members=members, parameters=("enableTestCommands=1",))
        stack.callback(mongo.stop)
        mongo.start()
        valkey = servers.valkey(data_dir=folder / "valkey", port=servers.free_port())
        stack.callback(valkey.kill)
        valkey.start()
        web_url = f"http://{HOST}:{servers.free_port()}"
        sandbox_url = f"http://{HOST}:{servers.free_port()}"
        variables = {
            **_variables(
                folder, mongo.uri(DATABASE), servers.valkey_url(valkey.port), web_url, sandbox_url
            ),
            **(environment or {}),
        }
        sandbox = _sandbox(folder, variables, sandbox_options, webhooks=webhooks)
        stack.callback(sandbox.kill)
        sandbox.start()
        key = _migrate_and_create_key(folder, variables)
        sandbox.wait_ready()
        database: Database[dict[str, Any]] = MongoClient(
            mongo.uri(DATABASE), tz_aware=True, tzinfo=UTC
        ).get_default_database()
        _configure_django(variables)
        installation = Installation(
            folder=folder,
            environment=variables,
            mongo=mongo,
            valkey=valkey,
            broker=redis.Redis.from_url(servers.valkey_url(valkey.port)),
            sandbox=sandbox,
            url=web_url,
            client=Client(url=web_url, key=key),
            watcher=StepRecorder(mongo.uri(DATABASE)),
            database=database,
        )
        stack.callback(installation.kill_all)
        installation.watcher.start()
        yield installation


def _configure_django(variables: Variables) -> None:
    """Let this process, too, use the service's own modules on this installation."""
    os.environ.update(variables)
    import django

    django.setup()


def _variables(
    folder: Path, mongodb_uri: str, redis_url: str, web_url: str, sandbox_url: str
) -> dict[str, str]:
    """Return the environment of every program."""
    secrets = assembly.create_secrets(folder / "sandbox", url=sandbox_url)
    return {
        "DJANGO_SETTINGS_MODULE": "notifyproject.settings.local",
        "PYTHONUNBUFFERED": "1",
        "SECRET_KEY": SECRET_KEY,
        "MONGODB_URI": mongodb_uri,
        "REDIS_URL": redis_url,
        "PUBLIC_URL": web_url,
        "SANDBOX_URL": sandbox_url,
        "SENDGRID_URL": sandbox_url,
        "SENDGRID_WEBHOOK_PUBLIC_KEY": secrets.public_key,
        "FCM_CREDENTIALS": str(secrets.service_account),
        "FCM_URL": sandbox_url,
        "WHATSAPP_TOKEN": secrets.whatsapp.access_token,
        "WHATSAPP_PHONE_NUMBER_ID": secrets.whatsapp.phone_number_id,
        "WHATSAPP_APP_SECRET": secrets.whatsapp.app_secret,
        "WHATSAPP_VERIFY_TOKEN": secrets.whatsapp.verify_token,
        "WHATSAPP_URL": sandbox_url,
        # The sandbox is to be the limit, not what Meta grants a new number.
        "WHATSAPP_MAX_PER_SECOND": "0",
        "LOG_LEVEL": "INFO",
        "LOG_FORMAT": "json",
    }


def _sandbox(
    folder: Path, variables: Variables, options: tuple[str, ...], *, webhooks: bool
) -> Program:
    port = variables["SANDBOX_URL"].rpartition(":")[2]
    webhook_options = [
        *("--webhook-url", f"{variables['PUBLIC_URL']}/webhooks/sendgrid"),
        *("--whatsapp-webhook-url", f"{variables['PUBLIC_URL']}/webhooks/whatsapp"),
    ]
    return Program(
        name="sandbox",
        command=[
            *(PYTHON, "-m", "sandbox", "--port", port, "--data", str(folder / "sandbox")),
            *(webhook_options if webhooks else ()),
            *options,
        ],
        environment=variables,
        log=folder / "sandbox.log",
        ready_text="sandbox: http",
    )


def _is_healthy(url: str) -> bool:
    try:
        answer = urllib3.request("GET", f"{url}/healthz", timeout=2, retries=False)
    except urllib3.exceptions.HTTPError:
        return False
    return answer.status == 200


def _migrate_and_create_key(folder: Path, variables: Variables) -> str:
    """Migrate, and return a key to the API."""
    for name, arguments in {
        "migrate": ("migrate", "--no-input", "--verbosity", "0"),
        "client": ("create_api_client", "chaos", "--scopes", *SCOPES),
    }.items():
        program = Program(
            name=name,
            command=[PYTHON, "manage.py", *arguments],
            environment=variables,
            log=folder / f"{name}.log",
        )
        program.start()
        program.wait_ended(timeout=120)
        if program.process is None or program.process.returncode:
            raise RuntimeError(f"{name} failed:\n{program.log.read_text()[-2_000:]}")
    return (folder / "client.log").read_text().split()[-1]
