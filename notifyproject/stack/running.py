"""Starts the local stack: servers, migrations, programs. Stops it from another process."""

import base64
import fcntl
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import IO

from sandbox import assembly

from ..settings.base import urgent_queue_names
from ..settings.environment import BASE_DIR, DATA_DIR, STACK_FILE, current, is_alive
from ..settings.kinds import split_list
from . import bytecode, servers
from .supervisor import Program, Supervisor

MEMORY_FILE = DATA_DIR / "memory.json"
STOP_SECONDS = 12
URGENT_THREADS = 16
"""Threads of the worker for critical deliveries and the service queue."""


class StackError(RuntimeError):
    """The stack cannot start or stop. The message has the reason."""


class Addresses:
    """Base URLs of a stack, on three consecutive ports."""

    def __init__(self, *, port: int) -> None:
        self.port = port
        self.web, self.sandbox, self.stream = (
            f"http://{servers.HOST}:{port + offset}" for offset in range(3)
        )


def up(*, port: int, with_examples: bool) -> None:
    """Run the stack until SIGINT or SIGTERM. Raises StackError, or an error of a program."""
    bytecode.enable_cache()
    DATA_DIR.mkdir(exist_ok=True)
    lock = _lock()
    addresses = Addresses(port=port)
    for used_port in (port, port + 1, port + 2):
        if not servers.is_free(used_port):
            raise StackError(
                f"Port {used_port} is in use: stop the program that listens there, or set PORT."
            )
    supervisor = Supervisor()
    try:
        environment = _start_servers(supervisor, addresses)
        # For other processes of this checkout, such as ``manage.py notify``.
        STACK_FILE.touch(mode=0o600)
        STACK_FILE.write_text(json.dumps({"pid": os.getpid(), "environment": environment}))
        _prepare(supervisor, environment)
        for program in programs(addresses, environment):
            supervisor.start(program)
        first_run = _start_first_run(addresses, environment, with_examples=with_examples)
        supervisor.run(
            on_tick=lambda: _report_first_run(supervisor, first_run),
            # Otherwise, the first run would log that the web is gone.
            before_stop=first_run.terminate,
        )
    finally:
        supervisor.stop()
        STACK_FILE.unlink(missing_ok=True)
        lock.close()


def down() -> bool:
    """Stop a running stack; return whether there was one."""
    if not STACK_FILE.exists():
        return False
    pid = json.loads(STACK_FILE.read_text())["pid"]
    if not is_alive(pid):
        STACK_FILE.unlink(missing_ok=True)
        return False
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while is_alive(pid):
        if time.monotonic() > deadline:
            raise StackError(f"The stack (process {pid}) does not stop.")
        time.sleep(0.1)
    return True


def programs(addresses: Addresses, environment: Mapping[str, str]) -> list[Program]:
    """Return the programs other than servers: sandbox, web, stream, workers, and beat."""
    python = sys.executable
    worker = [
        *(python, "-m", "celery", "-q", "-A", "notifyproject", "worker", "--loglevel", "INFO"),
        *("--without-gossip", "--without-mingle", "--without-heartbeat"),
    ]
    commands = {
        "sandbox": [
            *(python, "-m", "sandbox", "--port", str(addresses.port + 1)),
            *("--data", str(DATA_DIR / "sandbox")),
            *("--webhook-url", f"{addresses.web}/webhooks/sendgrid"),
            *("--whatsapp-webhook-url", f"{addresses.web}/webhooks/whatsapp"),
            *("--whatsapp-api-version", current().WHATSAPP_API_VERSION),
        ],
        "web": [
            *(python, "-m", "gunicorn", "notifyproject.wsgi"),
            *("--worker-class", "notifyproject.serving.worker.WebWorker"),
            *("--bind", f"{servers.HOST}:{addresses.port}", "--workers", "2", "--threads", "8"),
            *("--graceful-timeout", "5", "--log-level", "warning"),
        ],
        "stream": [
            *(python, "-m", "gunicorn", "notifyproject.asgi"),
            *("--worker-class", "notifyproject.serving.stream_worker.StreamWorker"),
            *("--bind", f"{servers.HOST}:{addresses.port + 2}", "--workers", "1"),
            *("--graceful-timeout", "2", "--log-level", "warning"),
        ],
        "worker": [*worker, "--hostname", "worker@%h"],
        "urgent": [
            *(*worker, "--hostname", "urgent@%h"),
            *("--queues", ",".join(urgent_queue_names())),
        ],
        "beat": [
            *(python, "-m", "celery", "-q", "-A", "notifyproject", "beat", "--loglevel", "WARNING"),
            *("--pidfile", ""),
        ],
    }
    # Not Celery's option, because the limit of each channel is a share of this setting.
    overrides = {"urgent": {"WORKER_THREADS": str(URGENT_THREADS)}}
    return [
        Program(name=name, command=command, environment={**environment, **overrides.get(name, {})})
        for name, command in commands.items()
    ]


def _start_servers(supervisor: Supervisor, addresses: Addresses) -> dict[str, str]:
    state: dict[str, int | str] = {}
    if MEMORY_FILE.exists():
        state = json.loads(MEMORY_FILE.read_text())
    mongodb_uri, redis_url = os.environ.get("MONGODB_URI"), os.environ.get("REDIS_URL")
    if not mongodb_uri:
        port = _choose_port(state.get("mongod"))
        mongod = servers.mongod(data_dir=DATA_DIR / "mongod", port=port)
        _supervise(supervisor, mongod)
        servers.make_primary(mongod.port)
        mongodb_uri = servers.mongodb_uri(mongod.port, "notifyproject")
        state["mongod"] = mongod.port
    if not redis_url:
        port = _choose_port(state.get("valkey"))
        valkey = servers.valkey(data_dir=DATA_DIR / "valkey", port=port)
        _supervise(supervisor, valkey)
        redis_url = servers.valkey_url(valkey.port)
        state["valkey"] = valkey.port
    for name in ("secret_key", "inbox_signing_key"):
        state.setdefault(name, secrets.token_urlsafe(48))
    # The key is stored, because without it encrypted values are lost. 48 bytes in base64.
    new_key = f"local:{base64.b64encode(secrets.token_bytes(48)).decode()}"
    state.setdefault("field_encryption_keys", new_key)
    MEMORY_FILE.write_text(json.dumps(state))
    MEMORY_FILE.chmod(0o600)
    return {
        "DJANGO_SETTINGS_MODULE": "notifyproject.settings.local",
        "PYTHONUNBUFFERED": "1",
        "MONGODB_URI": mongodb_uri,
        "REDIS_URL": redis_url,
        **own_settings(
            addresses,
            keys={
                "SECRET_KEY": str(state["secret_key"]),
                "INBOX_SIGNING_KEY": str(state["inbox_signing_key"]),
                "FIELD_ENCRYPTION_KEYS": str(state["field_encryption_keys"]),
            },
            environ=os.environ,
        ),
        **_providers(addresses),
    }


def own_settings(
    addresses: Addresses, *, keys: Mapping[str, str], environ: Mapping[str, str]
) -> dict[str, str]:
    """Return the stack's keys and addresses, in place of which ``environ`` may have others.

    Origins of inbox pages are added to the stack's own, whose page shows inboxes too.
    """
    settings = {
        **keys,
        "INBOX_STREAM_URL": addresses.stream,
        "PUBLIC_URL": addresses.web,
        "SANDBOX_URL": addresses.sandbox,
    }
    origins = [addresses.web, *split_list(environ.get("INBOX_ORIGINS", ""))]
    return {
        **{name: environ.get(name) or value for name, value in settings.items()},
        "INBOX_ORIGINS": ",".join(dict.fromkeys(origins)),
    }


def _providers(addresses: Addresses) -> dict[str, str]:
    sandbox_secrets = assembly.create_secrets(DATA_DIR / "sandbox", url=addresses.sandbox)
    account, whatsapp = str(sandbox_secrets.service_account), sandbox_secrets.whatsapp
    sandboxes = {
        "SENDGRID_WEBHOOK_PUBLIC_KEY": {"SENDGRID_WEBHOOK_PUBLIC_KEY": sandbox_secrets.public_key},
        "FCM_CREDENTIALS": {"FCM_CREDENTIALS": account, "FCM_URL": addresses.sandbox},
        "SANDBOX_FCM_CREDENTIALS": {"SANDBOX_FCM_CREDENTIALS": account},
        "WHATSAPP_TOKEN": {
            "WHATSAPP_TOKEN": whatsapp.access_token,
            "WHATSAPP_PHONE_NUMBER_ID": whatsapp.phone_number_id,
            "WHATSAPP_BUSINESS_ACCOUNT_ID": whatsapp.business_account_id,
            "WHATSAPP_APP_SECRET": whatsapp.app_secret,
            "WHATSAPP_VERIFY_TOKEN": whatsapp.verify_token,
            "WHATSAPP_URL": addresses.sandbox,
        },
    }
    return {
        name: value
        for variable, values in sandboxes.items()
        if not os.environ.get(variable)
        for name, value in values.items()
    }


def _supervise(supervisor: Supervisor, server: servers.Server) -> None:
    server.prepare()
    process = supervisor.start(Program(name=server.name, command=server.command, stop_last=True))
    server.wait(timeout=60, process=process, read_output=lambda: supervisor.output_of(server.name))


def _prepare(supervisor: Supervisor, environment: Mapping[str, str]) -> None:
    tasks = {
        name: subprocess.Popen(
            [sys.executable, "manage.py", *arguments],
            cwd=BASE_DIR,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for name, arguments in {
            "migrate": ["migrate", "--no-input", "--verbosity", "0"],
            "collectstatic": ["collectstatic", "--no-input", "--verbosity", "0"],
        }.items()
    }
    for name, task in tasks.items():
        output, _ = task.communicate()
        if task.returncode:
            raise StackError(f"{name} failed:\n{output}")
    supervisor.print_lines("database and static files are ready")


def _start_first_run(
    addresses: Addresses, environment: Mapping[str, str], *, with_examples: bool
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "notifyproject.stack.first_run"),
            *("--web", addresses.web, "--sandbox", addresses.sandbox),
            *(() if with_examples else ("--no-examples",)),
        ],
        cwd=BASE_DIR,
        env={**os.environ, **environment},
        text=True,
        start_new_session=True,
        preexec_fn=servers.die_with_parent,
    )


def _report_first_run(supervisor: Supervisor, first_run: subprocess.Popen[str]) -> None:
    if first_run.returncode is None and first_run.poll():
        supervisor.print_lines("the first run failed; the stack continues")


def _lock() -> IO[str]:
    lock = (DATA_DIR / "lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise StackError("A stack already uses this data: `make down` stops it.") from None
    return lock


def _choose_port(previous: int | str | None) -> int:
    if isinstance(previous, int) and servers.is_free(previous):
        return previous
    return servers.free_port()
