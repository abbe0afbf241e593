"""A push that FCM's schema doesn't allow fails the test that sent it."""

import json
from pathlib import Path
from typing import Any

import pytest

from notifyproject.platform.event_loop import run
from providers.contract import SendRequest
from providers.fcm import messages, provider
from sandbox.log import REQUESTS_FILE
from tests.support.fakes.provider import ScriptedProvider
from tests.support.providers import fcm_schema
from tests.support.providers.fcm import Project, push
from tests.support.waiting import LIMIT

BAD = {"android_config": {"urgency": "high"}}
NOTED = "request.message.android: there is no field urgency"


@pytest.fixture
def wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add an unknown field to every push."""
    arguments = messages.build_payload

    def spoilt(outbound: SendRequest, **now: Any) -> dict[str, Any]:
        return arguments(outbound, **now) | BAD

    monkeypatch.setattr(messages, "build_payload", spoilt)
    monkeypatch.setattr(provider, "build_payload", spoilt)


@pytest.mark.usefixtures("wrong")
def test_schema_check_sees_pushes_to_fcm(project: Project) -> None:
    run(project.fcm().send(push(), timeout=LIMIT))
    assert fcm_schema.take_noted() == [NOTED]


@pytest.mark.usefixtures("wrong")
def test_schema_check_sees_scripted_providers() -> None:
    run(ScriptedProvider().send(push(), timeout=LIMIT))
    assert fcm_schema.take_noted() == [NOTED]


@pytest.mark.usefixtures("wrong")
def test_schema_check_sees_other_processes(project: Project) -> None:
    run(project.fcm().send(push(), timeout=LIMIT))
    fcm_schema.take_noted()
    fcm_schema.look_into(Path(project.sandbox.data, REQUESTS_FILE))
    assert NOTED in fcm_schema.take_noted()


def test_valid_push_has_no_problem(project: Project) -> None:
    run(project.fcm().send(push(), timeout=LIMIT))
    run(ScriptedProvider().send(push(), timeout=LIMIT))
    assert fcm_schema.take_noted() == []


def test_schema_knows_both_spellings() -> None:
    for name in ("collapse_key", "collapseKey"):
        body = {"message": {"token": "device-1", "android": {name: "x"}}}
        assert fcm_schema.problems(json.dumps(body).encode()) == []
