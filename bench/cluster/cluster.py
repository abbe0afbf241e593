"""The cluster: its programs on their hosts, started, watched, and stopped."""

import os
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC
from functools import partial
from pathlib import Path
from typing import Any

import redis
from pymongo import MongoClient
from pymongo.errors import PyMongoError

from notifyproject.platform import valkey as valkey_client
from notifyproject.stack import servers

from ..chaos.change_stream import StepRecorder
from ..chaos.installation import (
    PYTHON,
    SCOPES,
    Service,
    is_healthy,
    latency_options,
    run_set_up,
    run_to_end,
    service_variables,
    set_up_commands,
)
from ..chaos.load import Client
from ..processes import Program, wait_until, web_command, worker_command
from . import plan
from .network import Network, NetworkError, missing
from .plan import APPS, DATA, EDGE, INTERNET, VALKEY_HOSTS, Host

DATABASE = "chaos"
URL = f"http://{EDGE.address}"
SERVER_SECONDS = 60.0
HEALTHY_SECONDS = 120.0
PROBE_SECONDS = 1.0
CACHE_GIGABYTES = "0.25"
STREAMS = 1_000
"""Inbox streams per process, so that one host can hold all of the fault scenarios."""


@dataclass(kw_only=True)
class Cluster(Service):
    """A running cluster. Its programs have the names of :mod:`.plan`."""

    network: Network
    all_programs: dict[str, Program]
    restarts: list[str] = field(default_factory=list)
    """Names of the service's programs that ended by themselves and were started again."""

    def named(self, kind: str) -> list[Program]:
        """Return the programs of a kind, such as "worker"."""
        return [
            program for name, program in self.all_programs.items() if name.startswith(f"{kind}-")
        ]

    def mongodb_primary(self) -> Host | None:
        """Return the host of MongoDB's primary with a majority; None during an election."""
        for host in DATA:
            try:
                with _mongod(host) as client:
                    # A primary that is cut off from its majority still says that it is one.
                    client.admin.command("appendOplogNote", 1, data={}, writeConcern=MAJORITY)
            except PyMongoError:
                continue
            return host
        return None

    def valkey_primaries(self) -> list[Host]:
        """Return the hosts whose Valkey considers itself as the primary."""
        return [host for host in VALKEY_HOSTS if _is_valkey_primary(host)]

    def watched_primary(self) -> Host | None:
        """Return the host that most Sentinels name as Valkey's primary."""
        named = [_named_by(host) for host in DATA]
        return next((host for host in VALKEY_HOSTS if named.count(host.address) >= 2), None)

    def supervise(self, seconds: float) -> None:
        """Wait, and start each of the service's programs again that has ended by itself."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.restart_ended()
            time.sleep(0.1)

    def supervise_until(
        self, condition: Callable[[], object], *, timeout: float, what: str
    ) -> float:
        """Supervise until a condition holds; return the seconds. Raises ScenarioError."""
        started = time.monotonic()

        def holds() -> object:
            self.restart_ended()
            return condition()

        wait_until(holds, timeout=timeout, what=what, poll=0.2)
        return time.monotonic() - started

    def restart_ended(self) -> None:
        """Start programs of the service that have ended by themselves, as a supervisor does."""
        for program in self.programs:
            if program.process is not None and not program.is_alive:
                self.restarts.append(program.name)
                self.record_end(program)
                program.start()

    def run_command(self, name: str, host: Host, command: Sequence[str], *, code: Path) -> None:
        """Run a command of a version of the service on a host. Raises ScenarioError."""
        program = _program(self.network, host, name, command, self.environment)
        program.folder = code
        run_to_end(program)

    def wait_healthy(self) -> float:
        """Wait until all members and replicas follow their primaries; return the seconds."""
        return self.supervise_until(
            self._is_healthy, timeout=HEALTHY_SECONDS, what="the cluster is not whole again"
        )

    def _is_healthy(self) -> bool:
        primary = self.watched_primary()
        return (
            self.mongodb_primary() is not None
            and all(_is_member(host) for host in DATA)
            and primary is not None
            and self.valkey_primaries() == [primary]
            and _replicas(primary) == 1
        )


MAJORITY = {"w": "majority", "wtimeout": 2_000}


@contextmanager
def run_cluster(
    *,
    environment: Mapping[str, str] | None = None,
    scopes: Sequence[str] = SCOPES,
    console: socket.socket | None = None,
    log_progress: Callable[[str], object] = lambda _: None,
) -> Iterator[Cluster]:
    """Build the cluster and run it during the block. This thread moves to the clients' host.

    The client has ``scopes``. ``console`` is a listening socket through which the proxy is reached
    from outside. Raises NetworkError without the right or the programs to do so, and ScenarioError.
    """
    if problem := missing():
        raise NetworkError(problem)
    network = Network()
    with ExitStack() as stack:
        stack.callback(network.remove)
        network.create()
        network.enter(INTERNET)
        log_progress("hosts and cables are there")
        sandbox_url = f"http://{INTERNET.address}:{plan.SANDBOX_PORT}"
        variables = {
            **service_variables(network.folder, web_url=URL, sandbox_url=sandbox_url),
            "MONGODB_URI": plan.mongodb_uri(DATABASE),
            "REDIS_URL": plan.redis_url(),
            # The proxy's address, and those at which the readiness of a web is checked.
            "ALLOWED_HOSTS": ",".join(["127.0.0.1", *(host.address for host in (EDGE, *APPS))]),
            "TRUSTED_PROXIES": "1",
            "INBOX_STREAMS": str(STREAMS),
            **(environment or {}),
        }
        programs = _programs(network, variables, console=console)
        servers_first = [program for name, program in programs.items() if not _is_service(name)]
        _start(servers_first, timeout=SERVER_SECONDS)
        with _mongod(DATA[0]) as member:
            member.admin.command("replSetInitiate", plan.replica_set())
        uri = plan.mongodb_uri(DATABASE)
        mongo = MongoClient[dict[str, Any]](uri, tz_aware=True, tzinfo=UTC)
        wait_until(lambda: mongo.primary, timeout=SERVER_SECONDS, what="there is no primary")
        log_progress("MongoDB, Valkey, Sentinels, proxy, and sandbox run")
        set_up = [
            _program(network, APPS[0], name, command, variables)
            for name, command in set_up_commands(scopes).items()
        ]
        service = [program for name, program in programs.items() if _is_service(name)]
        key = run_set_up(*set_up)
        log_progress("the database is created")
        # This process uses the service's modules, too.
        os.environ.update(variables)
        import django

        django.setup()
        cluster = Cluster(
            folder=network.folder,
            environment=variables,
            sandbox=programs["sandbox"],
            url=URL,
            client=Client(url=URL, key=key),
            recorder=StepRecorder(uri),
            database=mongo.get_default_database(),
            network=network,
            all_programs=programs,
            programs=service,
        )
        stack.callback(cluster.kill_all)
        cluster.start(*cluster.programs)
        cluster.wait_healthy()
        wait_until(lambda: is_healthy(URL), timeout=SERVER_SECONDS, what="the proxy has no web")
        log_progress("webs, streams, workers, and beats run")
        cluster.recorder.start()
        yield cluster


def _programs(
    network: Network, variables: Mapping[str, str], *, console: socket.socket | None
) -> dict[str, Program]:
    """Return all programs of the plan, by name, not started."""
    programs = {}
    for host in plan.HOSTS:
        for name in host.runs:
            command = _command(network, host, name, console=console)
            program = _program(network, host, name, command, variables)
            programs[name] = program
            kind = name.partition("-")[0]
            if kind == "web":
                program.is_usable = partial(is_healthy, f"http://{host.address}:{plan.WEB_PORT}")
            elif kind == "worker":
                program.ready_text = f"{name}@{socket.gethostname()} ready"
            elif kind in PORTS:
                program.is_usable = partial(_is_listening, (host.address, PORTS[kind]))
            elif kind == "beat":
                program.ready_text = "beat: Starting"
    if console is not None:
        programs["proxy"].inherited = (console.fileno(),)
    return programs


PORTS = {
    "mongod": plan.MONGOD_PORT,
    "valkey": plan.VALKEY_PORT,
    "sentinel": plan.SENTINEL_PORT,
    "stream": plan.STREAM_PORT,
    "proxy": plan.PROXY_PORT,
    "sandbox": plan.SANDBOX_PORT,
}


def _command(
    network: Network, host: Host, name: str, *, console: socket.socket | None
) -> list[str]:
    """Return the command of a program, and create its folder and configuration."""
    folder = network.folder / name
    folder.mkdir(exist_ok=True)
    command: list[str]
    match name.partition("-")[0]:
        case "mongod":
            command = [
                str(servers.mongod_binary()),
                "--dbpath",
                str(folder),
                "--nounixsocket",
                "--bind_ip",
                f"127.0.0.1,{host.address}",
                "--port",
                str(plan.MONGOD_PORT),
                "--replSet",
                plan.REPLICA_SET,
                "--oplogSize",
                "256",
                "--wiredTigerCacheSizeGB",
                CACHE_GIGABYTES,
                *servers.set_parameters(servers.MONGOD_PARAMETERS),
            ]
        case "valkey":
            is_replica = host is not plan.FIRST_VALKEY_PRIMARY
            primary = (plan.FIRST_VALKEY_PRIMARY.address, str(plan.VALKEY_PORT))
            command = [
                str(servers.valkey_binary()),
                "--port",
                str(plan.VALKEY_PORT),
                "--bind",
                host.address,
                "127.0.0.1",
                "--protected-mode",
                "no",
                "--save",
                "",
                "--appendonly",
                "no",
                "--dir",
                str(folder),
                "--repl-timeout",
                "10",
                "--repl-ping-replica-period",
                "2",
                *(("--replicaof", *primary) if is_replica else ()),
            ]
        case "sentinel":
            path = folder / "sentinel.conf"
            path.write_text(plan.sentinel_configuration(host, folder=str(folder)))
            command = [str(servers.valkey_binary()), str(path), "--sentinel"]
        case "proxy":
            path = folder / "haproxy.cfg"
            extra = f"fd@{console.fileno()}" if console is not None else None
            path.write_text(plan.proxy_configuration(console=extra))
            command = ["haproxy", "-db", "-f", str(path)]
        case "sandbox":
            hooks = f"{URL}/webhooks"
            command = [
                PYTHON,
                "-m",
                "sandbox",
                "--host",
                host.address,
                "--data",
                str(folder),
                "--port",
                str(plan.SANDBOX_PORT),
                "--webhook-url",
                f"{hooks}/sendgrid",
                "--whatsapp-webhook-url",
                f"{hooks}/whatsapp",
                "--twilio-webhook-url",
                f"{hooks}/twilio",
                *latency_options(),
            ]
        case "web":
            options = ("--graceful-timeout", "20")
            address = f"{host.address}:{plan.WEB_PORT}"
            command = web_command("notifyproject.wsgi", address, processes=2, options=options)
        case "stream":
            command = [
                sys.executable,
                "-m",
                "gunicorn",
                "notifyproject.asgi",
                "--workers",
                "1",
                "--worker-class",
                "notifyproject.serving.stream_worker.StreamWorker",
                "--bind",
                f"{host.address}:{plan.STREAM_PORT}",
                "--graceful-timeout",
                "5",
            ]
        case "worker":
            command = worker_command(name)
        case _:
            command = [
                PYTHON,
                "-m",
                "celery",
                "-q",
                "-A",
                "notifyproject",
                "beat",
                "--pidfile",
                "",
            ]
    return command


def _program(
    network: Network, host: Host, name: str, command: Sequence[str], variables: Mapping[str, str]
) -> Program:
    return Program(
        name=name,
        command=network.command(host, command),
        environment=variables,
        log=network.folder / f"{name}.log",
    )


def _is_service(name: str) -> bool:
    return any(name in host.runs for host in APPS)


def _start(programs: Sequence[Program], *, timeout: float) -> None:
    for program in programs:
        program.start()
    for program in programs:
        program.wait_ready(timeout=timeout)


def _is_listening(address: tuple[str, int]) -> bool:
    try:
        with socket.create_connection(address, timeout=PROBE_SECONDS):
            return True
    except OSError:
        return False


def _mongod(host: Host) -> MongoClient[dict[str, Any]]:
    milliseconds = int(PROBE_SECONDS * 1_000)
    return MongoClient(
        host.address,
        plan.MONGOD_PORT,
        directConnection=True,
        serverSelectionTimeoutMS=milliseconds,
        connectTimeoutMS=milliseconds,
        socketTimeoutMS=4 * milliseconds,
    )


def _is_member(host: Host) -> bool:
    try:
        with _mongod(host) as client:
            state = client.admin.command("replSetGetStatus")["myState"]
    except PyMongoError:
        return False
    return state in (1, 2)


def _valkey(host: Host, port: int) -> redis.Redis:
    return valkey_client.open_client(f"redis://{host.address}:{port}/0", timeout=PROBE_SECONDS)


def _is_valkey_primary(host: Host) -> bool:
    return _replicas(host) is not None


def _replicas(host: Host) -> int | None:
    """Return the number of replicas of a primary; None for a replica or without an answer."""
    try:
        with _valkey(host, plan.VALKEY_PORT) as client:
            role = client.info("replication")
    except (redis.RedisError, OSError):
        return None
    return int(role["connected_slaves"]) if role["role"] == "master" else None


def _named_by(host: Host) -> str | None:
    """Return the address of Valkey's primary that a host's Sentinel names."""
    try:
        with _valkey(host, plan.SENTINEL_PORT) as client:
            address: bytes = client.sentinel_get_master_addr_by_name(plan.MASTER)[0]
            return address.decode()
    except (redis.RedisError, OSError):
        return None
