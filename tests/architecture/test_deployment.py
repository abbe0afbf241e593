"""Deployment files, the image, production settings, and secrets."""

import json
import os
import posixpath
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import redis
import yaml
from django.core.management import get_commands
from django.utils.module_loading import import_string
from gunicorn.workers.gasgi import ASGIWorker
from jsonschema import Draft202012Validator
from pymongo import MongoClient
from pymongo.errors import OperationFailure

from notifyproject import healthcheck
from notifyproject.celery import app
from notifyproject.serving.worker import WebWorker
from notifyproject.stack.servers import (
    free_port,
    mongod_binary,
    valkey_binary,
)
from notifyproject.supervision.forking import die_with_parent
from notifyproject.supervision.service import STOP_SECONDS, STREAM_SECONDS, WEB_SECONDS
from tests.support.source import ROOT, SERVICE
from tests.support.tables import each_case
from tests.support.waiting import LIMIT, until


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """A line of ``.dockerignore``.

    https://docs.docker.com/reference/dockerfile/#dockerignore-file
    """

    text: str
    lets_in: bool
    """The line begins with ``!``."""
    regex: re.Pattern[str]

    def matches(self, path: PurePosixPath) -> bool:
        folders = [str(folder) for folder in path.parents if folder != PurePosixPath(".")]
        return any(self.regex.fullmatch(name) for name in (str(path), *folders))


def patterns(text: str) -> list[Pattern]:
    found = []
    for line in text.splitlines():
        if line.startswith("#") or not line.strip():
            continue
        lets_in = line.strip().startswith("!")
        cleaned = posixpath.normpath(line.strip().removeprefix("!").strip()).lstrip("/")
        found.append(Pattern(text=cleaned, lets_in=lets_in, regex=_regex(cleaned)))
    return found


def is_excluded(path: PurePosixPath, by: Sequence[Pattern]) -> bool:
    """Return whether a path is excluded. The last matching pattern decides."""
    last = next((rule for rule in reversed(by) if rule.matches(path)), None)
    return last is not None and not last.lets_in


def copied(root: Path, by: Sequence[Pattern], *, every_folder: bool) -> set[str]:
    """Return the files below a folder that a build copies.

    With ``every_folder``, as BuildKit does if a pattern with ``!`` has wildcards. Podman and
    Docker's old builder skip an excluded folder unless such a pattern begins with its name.
    """
    return set(_copied(root, PurePosixPath("."), by, every_folder))


def _copied(
    root: Path, folder: PurePosixPath, by: Sequence[Pattern], every_folder: bool
) -> Iterator[str]:
    for entry in os.scandir(root / folder):
        path = folder / entry.name
        if entry.is_dir(follow_symlinks=False):
            begins = any(f"{rule.text}/".startswith(f"{path}/") for rule in by if rule.lets_in)
            if every_folder or begins or not is_excluded(path, by):
                yield from _copied(root, path, by, every_folder)
        elif not is_excluded(path, by):
            yield str(path)


def _regex(pattern: str) -> re.Pattern[str]:
    """Translate a pattern of Go's ``filepath.Match``, or with ``**``, to a regular expression."""
    parts = re.findall(r"\*\*/?|\*|\?|\[[^\]]*\]|\\.|.", pattern)
    words = []
    for number, part in enumerate(parts):
        is_last = number == len(parts) - 1
        if part.startswith("**"):
            words.append(".*" if is_last else "(.*/)?")
        elif part in ("*", "?"):
            words.append(f"[^/]{part.replace('?', '')}")
        elif part.startswith("["):
            words.append(part)
        else:
            words.append(re.escape(part.removeprefix("\\")))
    return re.compile("".join(words))


COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]


class _Changes(yaml.SafeLoader):
    """Reads a file that changes another: ``!reset`` removes, ``!override`` replaces."""


_Changes.add_constructor("!reset", lambda _loader, _node: None)
_Changes.add_constructor(
    "!override", lambda loader, node: loader.construct_mapping(node, deep=True)
)
SMALL: dict[str, dict[str, Any] | None] = yaml.load(
    (ROOT / "docker-compose.small.yml").read_text(), _Changes
)["services"]
OURS = {
    name: service for name, service in SERVICES.items() if service["image"] == "notifyproject:local"
}
PORTS = r"^(80:80|443:443|443:443/udp)$"
"""Of the proxy only: others would forge X-Forwarded-For."""
HARDENED = {
    "type": "object",
    "required": [
        "image",
        "init",
        "read_only",
        "tmpfs",
        "cap_drop",
        "security_opt",
        "logging",
        "mem_limit",
        "restart",
        "networks",
    ],
    "properties": {
        "image": {"pattern": r"^(notifyproject:local|[a-z/]+:\d+\.\d+\.\d+)$"},
        "init": {"const": True},
        "read_only": {"const": True},
        "tmpfs": {"const": ["/tmp"]},
        "cap_drop": {"const": ["ALL"]},
        "security_opt": {"const": ["no-new-privileges:true"]},
        "logging": {
            "required": ["driver", "options"],
            "properties": {
                "driver": {"const": "json-file"},
                "options": {"required": ["max-size", "max-file"]},
            },
        },
        "mem_limit": {"pattern": r"^\d+[mg]$"},
        "environment": {"type": "object", "additionalProperties": {"type": "string"}},
        "ports": {"items": {"pattern": PORTS}},
        "privileged": False,
    },
}
"""What each service must have: it is bounded, and can change nothing but its volumes."""


def test_each_container_is_bounded_and_hardened() -> None:
    problems = [
        f"{name}: {'/'.join(map(str, error.path))}: {error.message}"
        for name, service in SERVICES.items()
        for error in Draft202012Validator(HARDENED).iter_errors(service)
    ]
    assert problems == []


def test_compose_file_defines_every_service() -> None:
    ours = {"migrate", "web", "stream", "worker", "urgent", "beat"}
    assert (set(SERVICES), set(OURS)) == ({"proxy", "mongo", "valkey"} | ours, ours)


def test_small_installation_runs_all_programs_in_the_container_of_the_web() -> None:
    removed = {name for name, changes in SMALL.items() if changes is None}
    assert removed == set(OURS) - {"migrate", "web"}
    web, proxy = SMALL["web"], SMALL["proxy"]
    assert web is not None
    assert proxy is not None
    assert web["command"] == ["python", "manage.py", "service"]
    *health, web_program, stream, worker, beat = web["healthcheck"]["test"]
    assert health == ["CMD", "python", "manage.py", "healthcheck"]
    assert {web_program, stream} == set(healthcheck.PORTS)
    assert {worker, beat} == set(healthcheck.HEARTBEATS) - {"sweeper"}
    # The proxy reaches both by name, and waits for no container that is removed.
    assert web["networks"] == {"front": {"aliases": ["stream"]}}
    assert set(proxy["depends_on"]) == {"web"}


def test_small_installation_fits_into_2_gb() -> None:
    limits = [changes["mem_limit"] for changes in SMALL.values() if changes is not None]
    assert sum(int(limit.removesuffix("m")) for limit in limits) <= 1_800
    assert set(SERVICES) - set(OURS) <= set(SMALL)


def test_small_installation_is_stopped_before_docker_kills_it() -> None:
    web = SMALL["web"]
    assert web is not None
    grace = int(web["stop_grace_period"].removesuffix("s"))
    assert max(WEB_SECONDS, STREAM_SECONDS) < STOP_SECONDS < grace <= 30


def test_image_is_built_once() -> None:
    assert [name for name, service in SERVICES.items() if "build" in service] == ["migrate"]


def test_only_the_proxy_publishes_ports() -> None:
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["proxy"]


@each_case("name", sorted(set(SERVICES) - {"migrate"}))
def test_running_service_has_a_health_check(name: str) -> None:
    test = SERVICES[name]["healthcheck"]["test"]
    if name in OURS:
        program = "worker" if name == "urgent" else name
        assert test == ["CMD", "python", "manage.py", "healthcheck", program]
        assert program in (*healthcheck.PORTS, *healthcheck.HEARTBEATS)


def test_proxy_and_compose_name_the_same_ports() -> None:
    caddy = (ROOT / "deploy" / "caddy" / "Caddyfile").read_text()
    for program, port in healthcheck.PORTS.items():
        assert f"{program}:{port}}}" in caddy
        command = SERVICES[program].get("command") or [(ROOT / "Dockerfile").read_text()]
        assert any(f"0.0.0.0:{port}" in word for word in command)


def test_hsts_reaches_beyond_the_host_only_on_request() -> None:
    headers = production_settings(
        "(production.SECURE_HSTS_INCLUDE_SUBDOMAINS, production.SECURE_HSTS_PRELOAD)",
        *({"HSTS": hsts} for hsts in ("", "subdomains", "preload")),
    )
    assert headers == ["(False, False)", "(True, False)", "(True, True)"]


@each_case("name", SERVICES)
def test_service_depends_only_on_services_with_a_health_check_or_an_end(name: str) -> None:
    for other, wait in SERVICES[name].get("depends_on", {}).items():
        if wait["condition"] == "service_healthy":
            assert "healthcheck" in SERVICES[other]
        else:
            assert SERVICES[other]["restart"] == "no", "what completes is not started again"


@each_case("name", SERVICES)
def test_every_mounted_volume_is_declared(name: str) -> None:
    for volume in SERVICES[name].get("volumes", []):
        source = volume.partition(":")[0]
        assert source in COMPOSE["volumes"] or (ROOT / source).is_file()


@each_case("name", OURS)
def test_service_connects_to_mongodb_and_valkey(name: str) -> None:
    environment = OURS[name]["environment"]
    uri = r"mongodb://notify:\$\{MONGODB_PASSWORD\}@mongo:27017/\w+\?"
    options = "replicaSet=rs0&authSource=admin"
    assert re.fullmatch(uri + options, environment["MONGODB_URI"])
    assert re.fullmatch(r"redis://:\$\{VALKEY_PASSWORD\}@valkey:6379/\d", environment["REDIS_URL"])


def test_stores_require_passwords_and_publish_no_ports() -> None:
    """Compose refuses to start if a variable with ``:?`` is missing."""
    mongo, valkey = SERVICES["mongo"], SERVICES["valkey"]
    assert mongo["environment"]["MONGO_INITDB_ROOT_USERNAME"] == "notify"
    password = mongo["environment"]["MONGO_INITDB_ROOT_PASSWORD"]
    assert password.startswith("${MONGODB_PASSWORD:?")
    assert "--replSet rs0 --keyFile /tmp/keyfile" in mongo["entrypoint"][-1]
    assert valkey["environment"]["VALKEY_PASSWORD"].startswith("${VALKEY_PASSWORD:?")
    assert (
        """'requirepass "%s"\\n' "$$VALKEY_PASSWORD" > /tmp/valkey.conf""" in valkey["command"][-1]
    )
    for store in (mongo, valkey):
        assert "ports" not in store
        assert "PASSWORD" in store["healthcheck"]["test"]


@each_case("name", SERVICES)
def test_no_password_is_an_argument_of_a_process(name: str) -> None:
    """Every user of the host reads arguments in ``/proc``."""
    service = SERVICES[name]
    texts = [service.get("healthcheck", {}).get("test", ""), *service.get("command", ())]
    for text in (text for text in texts if isinstance(text, str)):
        assert not re.search(r"(--password|--requirepass|-a|-p)[ =]\S*\$\$", text)


def test_stores_accept_only_the_password_of_the_compose_file(tmp_path: Path) -> None:
    key_file, port, valkey_port = tmp_path / "keyfile", free_port(), free_port()
    _, _, script = SERVICES["mongo"]["entrypoint"]
    replaced = {
        "$$": "$",
        "-o mongodb -g mongodb ": "",
        "/tmp/keyfile": str(key_file),
        "docker-entrypoint.sh mongod": f"{mongod_binary()} --dbpath {tmp_path} --port {port}",
        "--bind_ip_all": "--bind_ip 127.0.0.1",
    }
    for old, new in replaced.items():
        assert old in script
        script = script.replace(old, new)
    valkey = SERVICES["valkey"]["command"][-1].replace("$$", "$")
    valkey = valkey.replace("/tmp", str(tmp_path))
    valkey = valkey.replace("--save", f"--port {valkey_port} --save")
    valkey = valkey.replace("valkey-server", str(valkey_binary()))
    environment = {
        "PATH": os.environ["PATH"],
        "MONGO_INITDB_ROOT_PASSWORD": "s3cret",
        "VALKEY_PASSWORD": "s3cret",
    }
    started: list[int] = []
    with ExitStack() as stack:
        for command in (["bash", "-c", script], ["sh", "-c", valkey]):
            process = subprocess.Popen(
                command,
                env=environment,
                cwd=tmp_path,
                stdout=subprocess.DEVNULL,
                preexec_fn=die_with_parent,
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            started.append(process.pid)
        address = f"127.0.0.1:{port}"
        _create_user(address)
        with (
            _client(address) as stranger,
            pytest.raises(OperationFailure, match="requires authentication"),
        ):
            stranger.admin.command("listDatabases")
        with _client(f"mongodb://notify:s3cret@{address}") as known:
            assert known.admin.command("listDatabases")["ok"]
        with redis.Redis(port=valkey_port, password="s3cret") as valkey_client:
            until(lambda: _answers(valkey_client))
        with redis.Redis(port=valkey_port) as valkey_stranger:
            assert not _answers(valkey_stranger)
        for pid in started:
            assert "s3cret" not in Path(f"/proc/{pid}/cmdline").read_text()
    assert key_file.stat().st_mode & 0o777 == 0o400


def _client(address: str) -> MongoClient[Any]:
    return MongoClient(address, directConnection=True)


def _create_user(address: str) -> None:
    """Create the first user as the image does, for which MongoDB trusts local clients."""
    with _client(address) as client:
        members = [{"_id": 0, "host": address}]
        client.admin.command("replSetInitiate", {"_id": "rs0", "members": members})
        until(lambda: client.admin.command("hello")["isWritablePrimary"])
        client.admin.command("createUser", "notify", pwd="s3cret", roles=["root"])


def _answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except redis.RedisError:
        return False


@pytest.mark.parametrize("name", sorted(set(OURS) - {"web"}))
def test_service_command_exists(name: str) -> None:
    program, *words = OURS[name]["command"]
    if program == "python":
        assert words[0] == "manage.py"
        assert words[1] in get_commands()
    elif program == "gunicorn":
        assert (name, words[0]) == ("stream", "notifyproject.asgi")
        assert Path(ROOT, "notifyproject", "asgi.py").exists()
        worker_class = words[words.index("--worker-class") + 1]
        assert issubclass(import_string(worker_class), ASGIWorker)
    else:
        assert (program, words[:2]) == ("celery", ["-A", "notifyproject"])
        assert words[2] in ("worker", "beat")
        assert app.main == "notifyproject"


def test_web_runs_the_command_of_the_image() -> None:
    (command,) = re.findall(r"^CMD \[(.+)\]$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    words = shlex.split(command.replace(",", " "))
    assert words[0] == "gunicorn"
    assert any(word.startswith("notifyproject.wsgi") for word in words)
    assert import_string(words[words.index("--worker-class") + 1]) is WebWorker


PATTERNS = patterns((ROOT / ".dockerignore").read_text())
NAMED = {
    "manage.py",
    "requirements.txt",
    "requirements-tracing.txt",
    "requirements-providers.txt",
}
SECRET_FILES = (
    ".env",
    ".env.local",
    ".env.production",
    "notifyproject/.env",
    "docs/.env",
    ".data/local-credentials.json",
    ".data/memory.json",
    ".data/sandbox/sendgrid.pem",
    "fcm_service_account.json",
    "notifyproject/my-service-account.json",
    "apns.key",
    "my-app-firebase-adminsdk-x1-0a.json",
    "access/tls.pem",
    "static/tls.key",
)
"""Secret files in a checkout: copies of .env.example, and credentials issued by providers."""
LOCAL = (
    ".venv/bin/python",
    ".git/config",
    ".pytest_cache/README.md",
    ".mypy_cache/3.11/a.json",
    "access/__pycache__/keys.cpython-311.pyc",
    "tests/conftest.py",
    "bench/__main__.py",
    "clients/python/README.md",
    "notes.txt",
    "dump.archive",
    "notifications/dump.json",
    "templates/old.html.orig",
    "static/console/.DS_Store",
    "sandbox/__main__.py",
)

STARTS = """
import manage, django
django.setup()
from django.core.management import call_command
call_command("collectstatic", interactive=False, verbosity=0)
import notifyproject.wsgi, notifyproject.asgi, notifyproject.celery
notifyproject.celery.app.loader.import_default_modules()
"""
"""The build step of the image, and the imports of web, stream, worker, and beat."""


def run(
    *command: str, cwd: Path = ROOT, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=cwd, env=env, capture_output=True, text=True, timeout=2 * LIMIT, check=False
    )


def git(*words: str) -> subprocess.CompletedProcess[str]:
    return run("git", "-c", "safe.directory=*", *words)


def wanted() -> set[str]:
    """Return the tracked files that the image must contain."""
    listed = git("ls-files", *SERVICE, "static", "templates")
    assert listed.returncode == 0, listed.stderr
    return {path for path in listed.stdout.splitlines() if (ROOT / path).exists()} | NAMED


def test_git_ignores_secret_files_and_their_copies() -> None:
    files = (*SECRET_FILES, ".env~", ".env.swp", ".env1", "secrets.env~", "a.pem")
    assert git("check-ignore", "--no-index", *files).stdout.split() == [*files]


def test_git_ignores_no_tracked_file() -> None:
    ignored = git("ls-files", "--cached", "--ignored", "--exclude-standard")
    assert (ignored.returncode, ignored.stdout) == (0, "")
    assert git("check-ignore", "--quiet", "--no-index", ".env.example").returncode == 1


@each_case("path", [*SECRET_FILES, *LOCAL])
def test_image_excludes_secret_and_local_files(path: str) -> None:
    assert is_excluded(PurePosixPath(path), PATTERNS)


@pytest.mark.parametrize("every_folder", [True, False])
def test_image_contains_exactly_the_service_files(tmp_path: Path, every_folder: bool) -> None:
    for path in (*wanted(), *SECRET_FILES, *LOCAL, *git("ls-files").stdout.splitlines()):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    assert copied(tmp_path, PATTERNS, every_folder=every_folder) == wanted()


def test_image_files_are_enough_to_start(tmp_path: Path) -> None:
    for path in copied(ROOT, PATTERNS, every_folder=False):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    kept = {n: os.environ[n] for n in ("PATH", "PYTHONPYCACHEPREFIX") if n in os.environ}
    environment = {**kept, "PYTHONDONTWRITEBYTECODE": "1", **production_environment()}
    result = run(sys.executable, "-c", STARTS, cwd=tmp_path, env=environment)
    assert result.returncode == 0, result.stdout + result.stderr
    assert (tmp_path / ".data" / "static").is_dir()


PRODUCTION = re.search(
    r"^PRODUCTION := ((?:.*\\\n)*.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE
)

SECRET_PATTERNS = {
    "a private key": r"PRIVATE KEY-----(\\n)?[A-Za-z0-9+/=]{40}|^MI[IG][A-Za-z0-9+/]{60}",
    "a key of AWS": r"\bAKIA[0-9A-Z]{16}\b",
    "a key of Google": r"\bAIza[0-9A-Za-z_-]{35}\b",
    "a key of SendGrid": r"\bSG\.[\w-]{22}\.[\w-]{43}\b",
    "a token of GitHub": r"\bgh[pousr]_[A-Za-z0-9]{36}\b",
    "a token of Slack": r"\bxox[abprs]-[0-9A-Za-z-]{20,}",
    "a token of Meta": r"\bEAA[A-Za-z0-9]{60,}\b",
    "a key of this service": r"\bntf_(?:test_)?[a-z0-9]{10}_[A-Za-z0-9_-]{32,}",
}


@each_case("name", OURS)
def test_service_trusts_one_proxy_unless_told_otherwise(name: str) -> None:
    assert OURS[name]["environment"]["TRUSTED_PROXIES"] == "${TRUSTED_PROXIES:-1}"


def test_forwarded_protocol_is_believed_only_behind_a_proxy() -> None:
    believed = production_settings(
        "hasattr(production, 'SECURE_PROXY_SSL_HEADER')",
        *({"TRUSTED_PROXIES": proxies} for proxies in ("", "0", "1")),
    )
    assert believed == ["False", "False", "True"]


def production_environment() -> dict[str, str]:
    assert PRODUCTION is not None
    words = PRODUCTION[1].replace("\\\n", " ").split()
    return dict(word.split("=", 1) for word in words)


def production_settings(expression: str, *changes: dict[str, str]) -> list[str]:
    """Return the value of an expression with each change of the environment, or the error."""
    environment = {**production_environment(), "PATH": os.environ["PATH"]}
    done = run(
        sys.executable, "-c", EACH_IN_A_FORK, expression, json.dumps(changes), env=environment
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


EACH_IN_A_FORK = """
import json, os, sys
import django.core.exceptions, pymongo, redis
for change in json.loads(sys.argv[2]):
    if os.fork() == 0:
        os.environ.update(change)
        try:
            from notifyproject.settings import production
            print(eval(sys.argv[1]), flush=True)
        except Exception as error:
            print(*str(error).splitlines(), sep="; ", flush=True)
        os._exit(0)
    os.wait()
"""
"""Loads the settings several times, and the libraries that they import once."""


def test_missing_encryption_key_is_refused() -> None:
    (refusal,) = production_settings("production", {"FIELD_ENCRYPTION_KEYS": ""})
    assert "Set FIELD_ENCRYPTION_KEYS in the environment" in refusal


UNSAFE = {
    "SECRET_KEY": "short",
    "ALLOWED_HOSTS": "*",
    "METRICS_TOKEN": "short",
    "SENDGRID_URL": "http://api.example.com",
}
REFUSALS = """
import importlib, json, django
django.setup()
from celery.signals import worker_init
from django.core.management import call_command
import notifyproject.celery
from tasks.beat import HeartbeatScheduler
starts = {
    "web": lambda: importlib.import_module("notifyproject.wsgi"),
    "stream": lambda: importlib.import_module("notifyproject.asgi"),
    "worker": lambda: worker_init.send(sender=None),
    "beat": lambda: HeartbeatScheduler(app=notifyproject.celery.app),
    "sweeper": lambda: call_command("sweeper", once=True, skip_checks=True),
}
refusals = {}
for name, start in starts.items():
    try:
        start()
    except BaseException as error:
        refusals[name] = f"{type(error).__name__}: {error}"
print(json.dumps(refusals))
"""
"""Starts each program in one process, which takes seconds to load."""


def test_programs_refuse_unsafe_production_settings_and_name_each() -> None:
    environment = {**production_environment(), **UNSAFE, "PATH": os.environ["PATH"]}
    done = run(sys.executable, "-c", REFUSALS, env=environment)
    assert done.returncode == 0, done.stderr
    refusals = json.loads(done.stdout)
    assert set(refusals) == {"web", "stream", "worker", "beat", "sweeper"}
    for program, refusal in refusals.items():
        assert refusal.startswith(("SystemCheckError", "SystemExit")), program
        assert [name for name in UNSAFE if name not in refusal] == [], program


@each_case("what", SECRET_PATTERNS)
def test_repository_contains_no_real_secret(what: str) -> None:
    listed = run("git", "grep", "-lIP", "-e", SECRET_PATTERNS[what])
    assert listed.stdout.split() == []


def test_proxy_does_not_reach_the_stores() -> None:
    networks = {name: set(service["networks"]) for name, service in SERVICES.items()}
    assert networks["mongo"] == networks["valkey"] == {"stores"}
    assert COMPOSE["networks"]["stores"]["internal"]
    assert networks.pop("proxy") == {"front"}
    others = {name: found for name, found in networks.items() if name not in ("mongo", "valkey")}
    assert all({"stores", "outside"} <= found for found in others.values())
    assert {name for name, found in others.items() if "front" in found} == {"web", "stream"}
