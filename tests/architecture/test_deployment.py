"""The deployment files fit together. Nothing is started."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import get_commands
from django.utils.module_loading import import_string
from gunicorn.workers.gasgi import ASGIWorker
from jsonschema import Draft202012Validator

from notifyproject.celery import app
from notifyproject.serving.worker import WebWorker
from tests.support.source import ROOT

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = {name: service for name, service in SERVICES.items() if "build" in service}
WORDS = {"type": "array", "items": {"type": "string"}, "minItems": 1}
COMMAND = {"anyOf": [{"type": "string"}, WORDS]}
SCHEMA = {
    "type": "object",
    "required": ["services"],
    "additionalProperties": False,
    "patternProperties": {"^x-": {}},
    "properties": {
        "volumes": {"type": "object"},
        "services": {"type": "object", "additionalProperties": {"$ref": "#/$defs/service"}},
    },
    "$defs": {
        "service": {
            "type": "object",
            "oneOf": [{"required": ["image"]}, {"required": ["build"]}],
            "additionalProperties": False,
            "properties": {
                "image": {"type": "string", "pattern": r"^[a-z/]+:\d+(\.\d+)*$"},
                "build": {"type": "string"},
                "env_file": {"type": "string"},
                "environment": {"type": "object", "additionalProperties": {"type": "string"}},
                "command": COMMAND,
                "ports": {"type": "array", "items": {"type": "string", "pattern": r"^\d+:\d+$"}},
                "volumes": {"type": "array", "items": {"type": "string", "pattern": "^[^:]+:/"}},
                "restart": {"enum": ["no", "always", "on-failure", "unless-stopped"]},
                "stop_grace_period": {"type": "string", "pattern": r"^\d+s$"},
                "healthcheck": {
                    "type": "object",
                    "required": ["test", "interval"],
                    "properties": {"test": COMMAND, "retries": {"type": "integer"}},
                },
                "depends_on": {
                    "type": "object",
                    "additionalProperties": {
                        "type": "object",
                        "required": ["condition"],
                        "properties": {
                            "condition": {
                                "enum": ["service_healthy", "service_completed_successfully"]
                            }
                        },
                    },
                },
            },
        }
    },
}
"""The part of the Compose specification that the file uses."""


def test_compose_file_matches_the_schema() -> None:
    problems = [
        f"{'/'.join(map(str, error.path))}: {error.message}"
        for error in Draft202012Validator(SCHEMA).iter_errors(COMPOSE)
    ]
    assert problems == []


def test_compose_file_defines_every_service() -> None:
    assert set(SERVICES) == {
        "mongo",
        "valkey",
        "migrate",
        "web",
        "stream",
        "worker",
        "urgent",
        "beat",
    }
    assert set(OURS) == {"migrate", "web", "stream", "worker", "urgent", "beat"}


@pytest.mark.parametrize("name", SERVICES)
def test_service_depends_only_on_services_with_a_health_check_or_an_end(name: str) -> None:
    for other, wait in SERVICES[name].get("depends_on", {}).items():
        if wait["condition"] == "service_healthy":
            assert "healthcheck" in SERVICES[other]
        else:
            assert SERVICES[other]["restart"] == "no", "what completes is not started again"


@pytest.mark.parametrize("name", SERVICES)
def test_every_mounted_volume_is_declared(name: str) -> None:
    for volume in SERVICES[name].get("volumes", []):
        assert volume.partition(":")[0] in COMPOSE["volumes"]


@pytest.mark.parametrize("name", OURS)
def test_service_connects_to_mongodb_and_valkey(name: str) -> None:
    environment = OURS[name]["environment"]
    assert re.fullmatch(r"mongodb://mongo:27017/\w+\?replicaSet=rs0", environment["MONGODB_URI"])
    assert re.fullmatch(r"redis://valkey:6379/\d", environment["REDIS_URL"])
    assert "--replSet rs0" in " ".join(SERVICES["mongo"]["command"])


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
    assert SERVICES["web"]["ports"] == ["8000:8000"]
