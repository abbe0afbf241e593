"""Starts the local stack: servers, migrations, programs. Stops it from another process."""

import base64
import fcntl
import itertools
import json
import os
import secrets
import signal
import sys
import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import IO

from domain.web_push import encode_base64url
from sandbox import assembly
from sandbox.credentials import MailAccounts

from ..settings.environment import DATA_DIR, STACK_FILE, current, is_alive
from ..settings.kinds import split_list
from ..supervision import forking, loading
from ..supervision.output import LabelledLog
from ..supervision.programs import Choices, service_programs
from ..supervision.supervisor import Process, Program, Supervisor
from . import bytecode, servers

MEMORY_FILE = DATA_DIR / "memory.json"
MONGOD = "mongod"
STOP_SECONDS = 6.0
"""Seconds for programs in which to end at a stop, before the servers do."""
DOWN_SECONDS = 12
SLACK_BOT = "xoxb-local-stack"
"""The sandbox accepts it; it isn't secret."""
COLLECT_STATIC = Program(
    name="collectstatic",
    command=(sys.executable, "-m", "django", "collectstatic", "--no-input", "--verbosity", "0"),
    is_forked=True,
)
LOCAL_MODULES = ("sandbox.__main__", "whitenoise.storage")
"""What only the programs of a local stack need."""


class StackError(RuntimeError):
    """The stack cannot start or stop. The message has the reason."""


class Addresses:
    """Base URLs of a stack, on three consecutive ports, and the host on which it listens."""

    def __init__(self, *, port: int, host: str = servers.HOST) -> None:
        self.port, self.host = port, host
        self.web, self.sandbox, self.stream = (
            f"http://{servers.HOST}:{port + offset}" for offset in range(3)
        )


def up(*, port: int, host: str, with_examples: bool) -> None:
    """Run the stack until SIGINT or SIGTERM. Raises StackError, or an error of a program."""
    bytecode.enable_cache()
    DATA_DIR.mkdir(exist_ok=True)
    lock = _lock()
    addresses = Addresses(port=port, host=host)
    for used_port in (port, port + 1, port + 2):
        if not servers.is_free(used_port):
            raise StackError(
                f"Port {used_port} is in use: stop the program that listens there, or set PORT."
            )
    output = LabelledLog(is_coloured=sys.stdout.isatty() and "NO_COLOR" not in os.environ)
    supervisor = Supervisor(output=output, stop_seconds=STOP_SECONDS, release=lock.close)
    try:
        started, environment = _start_servers(supervisor, addresses)
        os.environ.update(environment)
        # For other processes of this checkout, such as ``manage.py notify``.
        STACK_FILE.touch(mode=0o600)
        STACK_FILE.write_text(json.dumps({"pid": os.getpid(), "environment": environment}))
        # Meanwhile, the servers become ready. The web looks for static files when it is loaded.
        supervisor.run_once([COLLECT_STATIC])
        if forking.IS_SAFE:
            loading.load(LOCAL_MODULES)
        for server, process in started:
            read_output = partial(supervisor.last_lines, server.name)
            server.wait(timeout=60, process=process, read_output=read_output)
        supervisor.run_once([_migration([server for server, _ in started])])
        output.print_lines("database and static files are ready")
        for program in programs(addresses):
            supervisor.start(program)
        first_run = supervisor.launch(
            _first_run(addresses, with_examples=with_examples), is_labelled=False
        )
        supervisor.run(
            on_tick=_once_ended(first_run, lambda code: _report_first_run(output, code)),
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
    deadline = time.monotonic() + DOWN_SECONDS
    while is_alive(pid):
        if time.monotonic() > deadline:
            raise StackError(f"The stack (process {pid}) does not stop.")
        time.sleep(0.1)
    return True


def programs(addresses: Addresses) -> list[Program]:
    """Return the programs other than servers: sandbox, web, stream, workers, and beat."""
    sandbox = [
        *(sys.executable, "-m", "sandbox"),
        *("--host", addresses.host, "--port", str(addresses.port + 1)),
        *("--data", str(DATA_DIR / "sandbox")),
        *("--webhook-url", f"{addresses.web}/webhooks/sendgrid"),
        *("--whatsapp-webhook-url", f"{addresses.web}/webhooks/whatsapp"),
        *("--twilio-webhook-url", f"{addresses.web}/webhooks/twilio"),
        *("--mail-webhooks-url", f"{addresses.web}/webhooks"),
        *("--whatsapp-api-version", vars(current())["WHATSAPP_API_VERSION"]),
    ]
    choices = Choices(
        web=f"{addresses.host}:{addresses.port}",
        stream=f"{addresses.host}:{addresses.port + 2}",
        web_processes=2,
        web_seconds=5,
        stream_seconds=2,
        is_terse=True,
    )
    return [
        Program(name="sandbox", command=sandbox, is_forked=True),
        *service_programs(choices),
    ]


def _start_servers(
    supervisor: Supervisor, addresses: Addresses
) -> tuple[list[tuple[servers.Server, Process]], dict[str, str]]:
    """Start the servers that the environment doesn't name. Return them, and all variables."""
    state: dict[str, int | str] = {}
    if MEMORY_FILE.exists():
        state = json.loads(MEMORY_FILE.read_text())
    started = []
    mongodb_uri, redis_url = os.environ.get("MONGODB_URI"), os.environ.get("REDIS_URL")
    if not mongodb_uri:
        port = state["mongod"] = _choose_port(state.get("mongod"))
        mongod = servers.mongod(data_dir=DATA_DIR / MONGOD, port=port)
        started.append((mongod, _supervise(supervisor, mongod)))
        mongodb_uri = servers.mongodb_uri(mongod.port, "notifyproject")
    if not redis_url:
        port = state["valkey"] = _choose_port(state.get("valkey"))
        valkey = servers.valkey(data_dir=DATA_DIR / "valkey", port=port)
        started.append((valkey, _supervise(supervisor, valkey)))
        redis_url = servers.valkey_url(valkey.port)
    for name in ("secret_key", "inbox_signing_key"):
        state.setdefault(name, secrets.token_urlsafe(48))
    # The key is stored, because without it encrypted values are lost. 48 bytes in base64.
    new_key = f"local:{base64.b64encode(secrets.token_bytes(48)).decode()}"
    state.setdefault("field_encryption_keys", new_key)
    # Also stored: browsers subscribe with it. Any number below the curve's order is a key.
    web_push_key = (secrets.randbelow(2**255) + 1).to_bytes(32)
    state.setdefault("web_push_key", encode_base64url(web_push_key))
    MEMORY_FILE.write_text(json.dumps(state))
    MEMORY_FILE.chmod(0o600)
    return started, {
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
        **_providers(addresses, web_push_key=str(state["web_push_key"])),
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


def _providers(addresses: Addresses, *, web_push_key: str) -> dict[str, str]:
    sandbox_secrets = assembly.create_secrets(DATA_DIR / "sandbox", url=addresses.sandbox)
    account, whatsapp = str(sandbox_secrets.service_account), sandbox_secrets.whatsapp
    twilio = sandbox_secrets.twilio
    sandboxes = {
        "SENDGRID_WEBHOOK_PUBLIC_KEY": {"SENDGRID_WEBHOOK_PUBLIC_KEY": sandbox_secrets.public_key},
        "FCM_CREDENTIALS": {"FCM_CREDENTIALS": account, "FCM_URL": addresses.sandbox},
        "SLACK_BOT_TOKEN": {"SLACK_BOT_TOKEN": SLACK_BOT, "SLACK_BOT_URL": addresses.sandbox},
        "ROOMS_URL": {"ROOMS_URL": addresses.sandbox},
        "SANDBOX_FCM_CREDENTIALS": {"SANDBOX_FCM_CREDENTIALS": account},
        "WEBPUSH_KEYS": {
            "WEBPUSH_KEYS": web_push_key,
            "WEBPUSH_SUBJECT": "mailto:push@example.com",
            "WEBPUSH_HOME_URL": f"{addresses.web}/demo/inbox",
        },
        "WHATSAPP_TOKEN": {
            "WHATSAPP_TOKEN": whatsapp.access_token,
            "WHATSAPP_PHONE_NUMBER_ID": whatsapp.phone_number_id,
            "WHATSAPP_BUSINESS_ACCOUNT_ID": whatsapp.business_account_id,
            "WHATSAPP_APP_SECRET": whatsapp.app_secret,
            "WHATSAPP_VERIFY_TOKEN": whatsapp.verify_token,
            "WHATSAPP_URL": addresses.sandbox,
        },
        "TWILIO_ACCOUNT_SID": {
            "TWILIO_ACCOUNT_SID": twilio.account_sid,
            "TWILIO_AUTH_TOKEN": twilio.auth_token,
            "TWILIO_API_KEY_SID": twilio.api_key,
            "TWILIO_API_KEY_SECRET": twilio.api_secret,
            "TWILIO_MESSAGING_SERVICE_SID": twilio.messaging_service_sid,
            "TWILIO_URL": addresses.sandbox,
        },
        **_mail_apis(addresses, sandbox_secrets.mail),
    }
    return {
        name: value
        for variable, values in sandboxes.items()
        if not os.environ.get(variable)
        for name, value in values.items()
    }


def _mail_apis(addresses: Addresses, account: MailAccounts) -> dict[str, dict[str, str]]:
    """Return the variables of the providers of email that ``EMAIL_PROVIDER`` names."""
    password, url = account.webhook_secret, addresses.sandbox
    known = {
        "postmark": {
            "POSTMARK_SERVER_TOKEN": "local-stack",
            "POSTMARK_WEBHOOK_SECRET": password,
            "POSTMARK_URL": f"{url}/postmark",
        },
        "resend": {
            "RESEND_API_KEY": "local-stack",
            "RESEND_WEBHOOK_SECRET": account.resend_signing_secret,
            "RESEND_URL": f"{url}/resend",
        },
        "mailgun": {
            "MAILGUN_API_KEY": "local-stack",
            "MAILGUN_SIGNING_KEY": account.mailgun_signing_key,
            "MAILGUN_WEBHOOK_SECRET": password,
            "MAILGUN_URL": f"{url}/mailgun",
        },
    }
    named = split_list(os.environ.get("EMAIL_PROVIDER", ""))
    return {next(iter(known[name])): known[name] for name in named if name in known}


def _supervise(supervisor: Supervisor, server: servers.Server) -> Process:
    server.prepare()
    return supervisor.start(Program(name=server.name, command=server.command, stop_last=True))


def _migration(started: Collection[servers.Server]) -> Program:
    own = [("--mongod", str(server.port)) for server in started if server.name == MONGOD]
    module = "notifyproject.stack.prepare"
    migrate = [sys.executable, "-m", module, *itertools.chain(*own)]
    return Program(name="migrate", command=migrate, is_forked=True)


def _first_run(addresses: Addresses, *, with_examples: bool) -> Program:
    command = [
        *(sys.executable, "-m", "notifyproject.stack.first_run"),
        *("--web", addresses.web, "--sandbox", addresses.sandbox),
        *(() if with_examples else ("--no-examples",)),
    ]
    return Program(name="first run", command=command, is_forked=True)


def _once_ended(process: Process, report: Callable[[int], None]) -> Callable[[], None]:
    """Return a function that reports once that a process has ended."""

    def tick() -> None:
        if process.returncode is None and (code := process.poll()) is not None:
            report(code)

    return tick


def _report_first_run(output: LabelledLog, code: int) -> None:
    if code:
        output.print_lines("the first run failed; the stack continues")


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
