"""A complete installation for one run: servers, sandbox, web, workers, and beat on free ports."""

import os
import random
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
from typing import Any, Protocol

import redis
import urllib3
from bson import ObjectId
from pymongo import MongoClient
from pymongo.database import Database

from domain.channels import Channel
from domain.states import Priority
from notifyproject.stack import servers
from notifyproject.stack.servers import HOST, Server
from sandbox import assembly
from sandbox.log import REQUESTS_FILE, read_records

from ..processes import Program, ScenarioError, web_command, worker_command
from ..rabbitmq import RabbitMQ
from .change_stream import StepRecorder
from .evidence import Attempt, Evidence, Kill, Request, StoredNotification
from .load import Client, Load
from .replicas import ReplicaSet

DATABASE = "chaos"
BROKER_VARIABLE, RABBITMQ = "CHAOS_BROKER", "rabbitmq"
"""The environment variable that chooses the broker, and its value for RabbitMQ."""
LATENCY_VARIABLE = "CHAOS_LATENCY"
"""The environment variable with the milliseconds after which the providers respond."""
SCOPES = (
    "notifications:write",
    "notifications:read",
    "notifications:resend",
    "notifications:critical",
    "recipients:write",
    "devices:write",
    "limits:write",
    "templates:write",
)
PYTHON = sys.executable
COMMAND_SECONDS = 120.0
SWEEP_TEXT = ", unpublished "
"""Part of the line that `manage.py sweeper` prints for each sweep."""
Variables = Mapping[str, str]


class Broker(Protocol):
    """The broker of an installation: Valkey or RabbitMQ."""

    @property
    def pid(self) -> int:
        """The process ID."""

    def start(self) -> None:
        """Start the broker and wait until it is usable."""

    def kill(self) -> None:
        """Kill the broker."""

    def empty(self) -> None:
        """Remove all messages."""


@dataclass(frozen=True, kw_only=True)
class ValkeyBroker:
    """Valkey as the broker. It also has the rates and circuits."""

    server: Server

    @property
    def pid(self) -> int:
        """The process ID. Raises ScenarioError if Valkey doesn't run."""
        if self.server.process is None:
            raise ScenarioError("Valkey was not started")
        return self.server.process.pid

    def start(self) -> None:
        """Start Valkey and wait until it is usable."""
        self.server.start()

    def kill(self) -> None:
        """Kill Valkey, which loses its data."""
        self.server.kill()

    def empty(self) -> None:
        """Remove all messages and all other data."""
        with redis.Redis.from_url(servers.valkey_url(self.server.port)) as client:
            client.flushall()


@dataclass(kw_only=True)
class Service:
    """The processes, connections, and folders of an installation, for a scenario."""

    folder: Path
    environment: Variables
    sandbox: Program
    url: str
    client: Client
    recorder: StepRecorder
    database: Database[dict[str, Any]]
    programs: list[Program] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)

    def start(self, *programs: Program, **environment: str) -> None:
        """Start programs in parallel and wait until each is ready."""
        for program in programs:
            program.start(**environment)
        for program in programs:
            program.wait_ready()

    def kill(self, program: Program) -> None:
        """Kill a program and record its end."""
        self.record_end(program)
        program.kill()

    def kill_at_random(self, programs: Sequence[Program], *, kills: int, every: float) -> None:
        """Kill one of the running programs after every ``every`` seconds, and start it again."""
        for _ in range(kills):
            time.sleep(every)
            victim = random.Random().choice([program for program in programs if program.is_alive])
            self.kill(victim)
            victim.start()

    def record_end(self, program: Program) -> None:
        """Record that a worker ends now, so that the analysis considers its leases."""
        worker = f"{socket.gethostname()}:{program.pid}"
        self.kills.append(Kill(worker=worker, at=datetime.now(UTC)))

    def kill_all(self) -> None:
        """Kill every program of the service, but not the servers and the sandbox."""
        for program in self.programs:
            program.kill()

    def start_load(self, **options: Any) -> Load:
        """Start sending notifications in the background; see :class:`Load` for the options."""
        return Load(client=self.client, **options)

    def open_count(self) -> int:
        """Count the notifications that are not final."""
        return self.database["notifications"].count_documents({"due_at": {"$exists": True}})

    def wait_final(self, *, timeout: float, restarted: Sequence[Program] = ()) -> float:
        """Wait until every notification is final or the timeout is over; return the seconds.

        Programs in ``restarted`` that end by themselves are started again.
        """
        started = time.monotonic()
        while self.open_count() and time.monotonic() < started + timeout:
            for ended in (program for program in restarted if not program.is_alive):
                self.record_end(ended)
                self.start(ended)
            time.sleep(0.5)
        return min(time.monotonic() - started, timeout)

    def finish(self, *, timeout: float) -> Evidence:
        """Wait until every notification is final, then kill the service and return the records."""
        self.wait_final(timeout=timeout)
        return self.collect_evidence()

    def collect_evidence(self) -> Evidence:
        """Kill the service, so that nothing changes anymore, and return the run's records."""
        self.kill_all()
        return Evidence(
            answers=tuple(self.client.answers),
            requests=tuple(provider_requests(self.folder / "sandbox")),
            steps=tuple(self.recorder.finish()),
            stored=tuple(_stored(self.database)),
            attempts=tuple(_attempts(self.database)),
            kills=tuple(self.kills),
        )

    def script_outcome(self, recipient: str, outcome: str) -> None:
        """Make the sandbox apply an outcome to all messages to a recipient (``*`` for all)."""
        answer = urllib3.request(
            "PUT",
            f"{self.environment['SANDBOX_URL']}/_sandbox/behaviours/{recipient}",
            json={"outcome": outcome},
            timeout=10,
        )
        if answer.status >= 300:
            raise RuntimeError(f"the sandbox refused a script: {answer.data!r}")


@dataclass(kw_only=True)
class Installation(Service):
    """An installation on loopback, with servers of its own."""

    mongo: ReplicaSet
    broker: Broker

    def program(self, name: str, command: Sequence[str], *, ready_text: str = "") -> Program:
        """Return a program that isn't started yet, and is killed with the installation."""
        program = _program(self.folder, name, command, self.environment)
        program.ready_text = ready_text
        self.programs.append(program)
        return program

    def web(self) -> Program:
        """Return the web program as in production: gunicorn with 2 processes of 8 threads."""
        address = self.url.removeprefix("http://")
        options = ("--graceful-timeout", "20")
        command = web_command("notifyproject.wsgi", address, processes=2, options=options)
        web = self.program("web", command)
        web.is_usable = lambda: is_healthy(self.url)
        return web

    def worker(self, name: str = "worker", *, queues: str = "", is_urgent: bool = False) -> Program:
        """Return a Celery worker as in production; ``queues``: comma-separated, or all."""
        options = (*(("--queues", queues) if queues else ()), *(["--urgent"] if is_urgent else ()))
        command = worker_command(name, *options)
        return self.program(name, command, ready_text=f"{name}@{socket.gethostname()} ready")

    def workers(self, count: int) -> list[Program]:
        """Return ``count`` workers of all queues."""
        return [self.worker(f"worker-{number}") for number in range(count)]

    def beat(self, name: str = "beat") -> Program:
        """Return beat as in production."""
        command = ["-m", "celery", "-q", "-A", "notifyproject", "beat", "--pidfile", ""]
        return self.program(name, [PYTHON, *command], ready_text="beat: Starting")

    def sweeper(self, name: str = "sweeper", *options: str) -> Program:
        """Return a ``manage.py sweeper`` process, which sweeps without beat."""
        return self.program(name, [PYTHON, "manage.py", "sweeper", *options], ready_text=SWEEP_TEXT)

    def sweepers(self, count: int, *, every: str) -> list[Program]:
        """Return ``count`` sweepers that sweep every ``every`` seconds."""
        return [self.sweeper(f"sweeper-{number}", "--every", every) for number in range(count)]

    def clear_broker(self) -> None:
        """Delete all wake-ups, but not the broker's queue names."""
        if isinstance(self.broker, RabbitMQ):
            self.broker.empty()
            return
        with redis.Redis.from_url(self.environment["REDIS_URL"]) as client:
            for name in client.scan_iter():
                if not name.startswith(b"_kombu"):
                    client.delete(name)


@contextmanager
def run_installation(
    *, members: int = 1, webhooks: bool = True, environment: Variables | None = None
) -> Iterator[Installation]:
    """Start MongoDB with ``members``, Valkey, and a sandbox that sends ``webhooks`` or none."""
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
        redis_url = servers.valkey_url(valkey.port)
        stores = {"MONGODB_URI": mongo.uri(DATABASE), "REDIS_URL": redis_url}
        broker: Broker = ValkeyBroker(server=valkey)
        if os.environ.get(BROKER_VARIABLE) == RABBITMQ:
            broker = rabbitmq = RabbitMQ(folder=folder / "rabbitmq")
            stack.callback(rabbitmq.stop)
            rabbitmq.start()
            stores["BROKER_URL"] = rabbitmq.url
        urls = service_variables(folder, web_url=web_url, sandbox_url=sandbox_url)
        variables = {**stores, **urls, **(environment or {})}
        sandbox = _sandbox(folder, variables, webhooks=webhooks)
        stack.callback(sandbox.kill)
        sandbox.start()
        key = _migrate_and_create_key(folder, variables)
        sandbox.wait_ready()
        mongo_client = MongoClient[dict[str, Any]](mongo.uri(DATABASE), tz_aware=True, tzinfo=UTC)
        # This process uses the service's modules, too.
        os.environ.update(variables)
        import django

        django.setup()
        installation = Installation(
            folder=folder,
            environment=variables,
            mongo=mongo,
            broker=broker,
            sandbox=sandbox,
            url=web_url,
            client=Client(url=web_url, key=key),
            recorder=StepRecorder(mongo.uri(DATABASE)),
            database=mongo_client.get_default_database(),
        )
        stack.callback(installation.kill_all)
        installation.recorder.start()
        yield installation


def publish_wakeups(ids: Sequence[str], *, channel: str, priority: str) -> bool:
    """Publish a wake-up for deliveries; return whether the broker accepted the wake-up."""
    # The service's modules need its settings, which exist only after the servers started.
    from notifications.queueing import wakeups

    return wakeups.send_wakeup(
        [ObjectId(notification_id) for notification_id in ids],
        channel=Channel(channel),
        priority=Priority(priority),
        now=datetime.now(UTC),
    )


def provider_requests(folder: Path) -> list[Request]:
    """Return the messages in the sandbox's durable log, oldest first."""
    # The service's modules need its settings, which exist only after the servers started.
    from notifications.store.references import AttemptReference

    path = folder / REQUESTS_FILE
    return [
        Request(
            notification_id=str(reference.notification_id),
            channel=reference.channel.value,
            attempt=reference.attempt_number,
            device_id=reference.device_id,
            at=record.time,
            accepted=record.accepted,
        )
        for record in (read_records(path) if path.exists() else ())
        if record.is_message
        # A push names its attempt in several places of one request.
        for reference in dict.fromkeys(map(AttemptReference.parse, record.references))
        if reference is not None
    ]


def _stored(database: Database[dict[str, Any]]) -> list[StoredNotification]:
    fields = {"idempotency_key": 1, "delivery.channel": 1, "delivery.status": 1}
    return [
        StoredNotification(
            notification_id=str(document["_id"]),
            key=document.get("idempotency_key"),
            deliveries={
                delivery["channel"]: delivery["status"] for delivery in document["delivery"]
            },
        )
        for document in database["notifications"].find({}, fields)
    ]


def _attempts(database: Database[dict[str, Any]]) -> list[Attempt]:
    return [
        Attempt(
            notification_id=str(record["notification_id"]),
            channel=record["channel"],
            number=record["attempt_number"],
            device_id=record.get("device_id"),
            status=record["status"],
        )
        for record in database["delivery_attempts"].find()
    ]


PROVIDER_URLS = (
    "SANDBOX_URL",
    "SENDGRID_URL",
    "FCM_URL",
    "WHATSAPP_URL",
    "TWILIO_URL",
    "ROOMS_URL",
)


def service_variables(folder: Path, *, web_url: str, sandbox_url: str) -> dict[str, str]:
    """Return the settings of a service whose provider is the sandbox."""
    secrets = assembly.create_secrets(folder / "sandbox", url=sandbox_url)
    return {
        "DJANGO_SETTINGS_MODULE": "notifyproject.settings.local",
        "PYTHONUNBUFFERED": "1",
        "SECRET_KEY": "only-for-fault-injection-" + "0" * 40,
        "PUBLIC_URL": web_url,
        **dict.fromkeys(PROVIDER_URLS, sandbox_url),
        "SENDGRID_WEBHOOK_PUBLIC_KEY": secrets.public_key,
        "FCM_CREDENTIALS": str(secrets.service_account),
        "WHATSAPP_TOKEN": secrets.whatsapp.access_token,
        "WHATSAPP_PHONE_NUMBER_ID": secrets.whatsapp.phone_number_id,
        "WHATSAPP_APP_SECRET": secrets.whatsapp.app_secret,
        "WHATSAPP_VERIFY_TOKEN": secrets.whatsapp.verify_token,
        "TWILIO_ACCOUNT_SID": secrets.twilio.account_sid,
        "TWILIO_AUTH_TOKEN": secrets.twilio.auth_token,
        "TWILIO_MESSAGING_SERVICE_SID": secrets.twilio.messaging_service_sid,
        "SMS_COUNTRIES": "GB,PT",
        # No rate limits, which would be those of a new number.
        "PROVIDER_MAX_PER_SECOND": "whatsapp:0,twilio:0",
        # Scenarios send hundreds of codes to a few numbers.
        "SMS_CODES_PER_NUMBER": "0",
        "LOG_LEVEL": "INFO",
        "LOG_FORMAT": "json",
    }


def latency_options() -> list[str]:
    """Return the sandbox's options for the latency of this run."""
    return ["--response-after", str(int(os.environ.get(LATENCY_VARIABLE, "0")) / 1_000)]


def _sandbox(folder: Path, variables: Variables, *, webhooks: bool) -> Program:
    port = variables["SANDBOX_URL"].rpartition(":")[2]
    command = [PYTHON, "-m", "sandbox", "--port", port, "--data", str(folder / "sandbox")]
    command += latency_options()
    if webhooks:
        url = f"{variables['PUBLIC_URL']}/webhooks"
        command += ["--webhook-url", f"{url}/sendgrid", "--whatsapp-webhook-url", f"{url}/whatsapp"]
        command += ["--twilio-webhook-url", f"{url}/twilio", "--mail-webhooks-url", url]
    sandbox = _program(folder, "sandbox", command, variables)
    sandbox.ready_text = "sandbox: http"
    return sandbox


def _program(folder: Path, name: str, command: Sequence[str], variables: Variables) -> Program:
    return Program(name=name, command=command, environment=variables, log=folder / f"{name}.log")


def is_healthy(url: str) -> bool:
    """Return whether a web answers its liveness probe."""
    try:
        answer = urllib3.request("GET", f"{url}/healthz", timeout=2, retries=False)
    except urllib3.exceptions.HTTPError:
        return False
    return answer.status == 200


def _migrate_and_create_key(folder: Path, variables: Variables) -> str:
    commands = set_up_commands(SCOPES)
    return run_set_up(*(_program(folder, *command, variables) for command in commands.items()))


def set_up_commands(scopes: Sequence[str], *, client: str = "chaos") -> dict[str, list[str]]:
    """Return the commands before the first start; the last prints the key of a client."""
    return {
        "migrate": [PYTHON, "manage.py", "migrate", "--no-input", "--verbosity", "0"],
        "client": [PYTHON, "manage.py", "create_api_client", client, "--scopes", *scopes],
    }


def run_set_up(*programs: Program) -> str:
    """Run :func:`set_up_commands` in turn; return the client's key. Raises ScenarioError."""
    for program in programs:
        run_to_end(program)
    return program.log.read_text().split()[-1]


def run_to_end(program: Program) -> None:
    """Run a command of the service. Raises ScenarioError if it fails."""
    program.start()
    program.wait_ended(timeout=COMMAND_SECONDS)
    if program.process is None or program.process.returncode:
        raise ScenarioError(f"{program.name} failed:\n{program.log.read_text()[-2_000:]}")
