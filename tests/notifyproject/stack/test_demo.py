"""The demo of the inbox, which only a local stack serves."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client as DjangoClient

from notifyproject.settings import base, local
from notifyproject.stack import demo
from tests.support.clients.api import App

pytestmark = pytest.mark.usefixtures("db")
PAGE = "/demo/inbox"


@pytest.fixture
def stack(
    app: App, live_server: Any, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> DjangoClient:
    """Return a client of a stack whose credentials are the app's."""
    settings.ROOT_URLCONF = "notifyproject.stack.urls"
    settings.PUBLIC_URL = live_server.url
    credentials = tmp_path / "credentials.json"
    credentials.write_text(json.dumps({"api_key": app.key}))
    monkeypatch.setattr(demo, "CREDENTIALS_FILE", credentials)
    return DjangoClient()


def test_only_the_local_settings_serve_it(client: DjangoClient) -> None:
    assert local.ROOT_URLCONF == "notifyproject.stack.urls"
    assert base.ROOT_URLCONF == "notifyproject.urls"
    others = set(Path(base.__file__).parent.glob("*.py")) - {Path(local.__file__)}
    assert not any("stack.urls" in path.read_text() for path in others)
    assert client.get(PAGE).status_code == 404


def test_page_has_a_strict_policy_and_the_code_to_copy(stack: DjangoClient) -> None:
    answer = stack.get(PAGE)
    policy = answer["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
    assert "unsafe" not in policy
    text = answer.content.decode()
    assert not re.search(r"<style|\sstyle=|\son\w+=", text)
    for name in ("inbox", "push-button"):
        assert text.count(demo._integrity(demo._bundle(name))) == 2


def test_worker_is_the_pages_own_and_loads_the_services(stack: DjangoClient) -> None:
    answer = stack.get("/demo/notify-push.js")
    assert answer["Content-Type"] == "text/javascript"
    assert answer.content.decode() == 'importScripts("/static/push/0.1.0.js");\n'
    assert "'unsafe" not in answer["Content-Security-Policy"]


def test_push_comes_from_the_api(stack: DjangoClient, app: App) -> None:
    sent = stack.post(f"{PAGE}/push/demo-ada").json()["id"]
    (delivery,) = app.get(f"/notifications/{sent}").json()["delivery"]
    assert delivery["channel"] == "push"


def test_token_and_messages_come_from_the_api(stack: DjangoClient) -> None:
    token = stack.get(f"{PAGE}/token/demo-ada").json()
    assert token["user_id"] == "demo-ada"
    for _ in range(2):
        assert stack.post(f"{PAGE}/send/demo-ada").status_code == 200
    shown = stack.get("/api/v1/inbox", headers={"Authorization": f"Bearer {token['token']}"})
    subjects = [result["subject"] for result in shown.json()["results"]]
    assert subjects == ["Your export is ready", "Your order has shipped"]


def test_unknown_person_and_missing_csrf_token_are_refused(stack: DjangoClient) -> None:
    assert stack.get(f"{PAGE}/token/eve").status_code == 404
    assert stack.post(f"{PAGE}/send/eve").status_code == 404
    strict = DjangoClient(enforce_csrf_checks=True)
    assert strict.post(f"{PAGE}/send/demo-ada").status_code == 403


def test_failure_of_the_api_is_told(
    stack: DjangoClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps({"api_key": "ntf_unknown"}))
    monkeypatch.setattr(demo, "CREDENTIALS_FILE", wrong)
    assert stack.post(f"{PAGE}/send/demo-ada").status_code == 502
    monkeypatch.setattr(demo, "CREDENTIALS_FILE", tmp_path / "none.json")
    answer = stack.get(f"{PAGE}/token/demo-ada")
    assert (answer.status_code, answer.json()["detail"]) == (503, "The stack is still starting.")
