"""docker-compose.try.yml runs what ``make up`` does, beside the servers of docker-compose.yml."""

import itertools
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from notifyproject.settings.variables import VARIABLES
from notifyproject.stack import command, running, servers
from tests.architecture import test_deployment as deployment
from tests.support.source import ROOT
from tests.support.tables import each_case

SERVICES: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.try.yml").read_text())["services"]
STACK = SERVICES["stack"]
DOCKERFILE = (ROOT / STACK["build"]["dockerfile"]).read_text()
IGNORED = (ROOT / f"{STACK['build']['dockerfile']}.dockerignore").read_text()
BESIDE = ("sandbox", "tests/examples", "requirements-sandbox.txt")
"""What the image has beside the service's files."""


def test_servers_are_those_of_the_compose_file() -> None:
    assert set(SERVICES) == {"mongo", "valkey", "stack"}
    for name in ("mongo", "valkey"):
        assert SERVICES[name]["image"] == deployment.SERVICES[name]["image"]
        assert "ports" not in SERVICES[name]


def test_mongod_has_the_parameters_of_the_compose_file() -> None:
    named = re.findall(r"--setParameter (\S+)", deployment.SERVICES["mongo"]["entrypoint"][-1])
    words = SERVICES["mongo"]["command"]
    given = [word for before, word in itertools.pairwise(words) if "Param" in before]
    assert given == named
    assert words[words.index("--replSet") + 1] == servers.REPLICA_SET
    assert set(named) <= set(servers.MONGOD_PARAMETERS)


def test_image_has_the_python_of_the_service() -> None:
    base = re.compile(r"^FROM (.+)$", re.MULTILINE)
    assert base.findall(DOCKERFILE) == base.findall((ROOT / "Dockerfile").read_text())


def test_stack_starts_no_server_of_its_own() -> None:
    environment = STACK["environment"]
    assert environment.keys() == {"MONGODB_URI", "REDIS_URL"} <= VARIABLES.keys()
    assert environment["MONGODB_URI"].startswith("mongodb://mongo:27017/")
    assert environment["MONGODB_URI"].endswith(f"?replicaSet={servers.REPLICA_SET}")
    assert environment["REDIS_URL"].startswith("redis://valkey:6379/")


def test_stack_runs_the_command_of_make_up_where_published_ports_lead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(running, "up", lambda **options: asked.append(options))
    (text,) = re.findall(r"^CMD (.+)$", DOCKERFILE, re.MULTILINE)
    python, manage, name, *words = json.loads(text)
    assert (python, manage, name) == ("python", "manage.py", "stack")
    assert command.main(words) is None
    assert asked == [{"port": 8000, "host": "0.0.0.0", "with_examples": True}]


def test_published_ports_are_those_that_links_name() -> None:
    addresses = running.Addresses(port=8000, host="0.0.0.0")
    urls = (addresses.web, addresses.sandbox, addresses.stream)
    ports = [url.rpartition(":")[2] for url in urls]
    assert STACK["ports"] == [f"{servers.HOST}:{port}:{port}" for port in ports]
    listening = " ".join(
        word for program in running.programs(addresses) for word in program.command
    )
    for port in (ports[0], ports[2]):
        assert f"0.0.0.0:{port}" in listening
    assert f"--host 0.0.0.0 --port {ports[1]}" in listening


@each_case("name", SERVICES)
def test_volume_is_declared_and_the_stacks_data_is_in_one(name: str) -> None:
    declared = yaml.safe_load((ROOT / "docker-compose.try.yml").read_text())["volumes"]
    for volume in SERVICES[name].get("volumes", ()):
        assert volume.partition(":")[0] in declared
    assert STACK["volumes"] == ["stack:/app/.data"]
    assert "install --directory --owner notify /app/.data" in DOCKERFILE


def wanted() -> set[str]:
    """Return the tracked files that the image must contain."""
    listed = deployment.git("ls-files", *BESIDE).stdout.splitlines()
    return deployment.wanted() | {path for path in listed if (ROOT / path).exists()}


@pytest.mark.parametrize("every_folder", [True, False])
def test_image_has_the_files_of_the_service_and_of_the_sandbox(
    tmp_path: Path, every_folder: bool
) -> None:
    assert IGNORED.startswith((ROOT / ".dockerignore").read_text())
    by = deployment.patterns(IGNORED)
    local = (set(deployment.SECRET_FILES) | set(deployment.LOCAL)) - {"sandbox/__main__.py"}
    tracked = deployment.git("ls-files").stdout.splitlines()
    for path in (*wanted(), *local, "sandbox/__pycache__/log.pyc", *tracked):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    assert deployment.copied(tmp_path, by, every_folder=every_folder) == wanted()


def test_image_installs_only_files_that_it_has() -> None:
    copied, installed = (
        set(re.findall(r"requirements[\w-]*\.txt", line))
        for line in DOCKERFILE.splitlines()
        if "requirements" in line
    )
    assert copied == installed
    assert copied <= wanted()


def test_file_says_how_it_is_started() -> None:
    text = (ROOT / "docker-compose.try.yml").read_text()
    guide = (ROOT / "docs" / "guides" / "quickstart.md").read_text()
    (line,) = re.findall(r"^#   (docker .+)$", text, re.MULTILINE)
    assert shlex.split(line) == ["docker", "compose", "-f", "docker-compose.try.yml", "up"]
    assert line in guide
