"""Requests of a test key and their answers: of the API, and of the service in memory."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
from django.conf import settings
from notifyproject_client.testing.memory import KEY, URL, MemoryService

from domain.time import utc_now
from tests.support.clients.api import App

TYPES = Path(settings.BASE_DIR, "templates", "notifications")
"""The shipped types, in folders as ``notify pull`` writes them."""
Case = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """What is compared of an answer."""

    status: int
    code: str | None
    errors: Mapping[str, str]
    is_replayed: bool
    body: Any


Ask = Callable[[str, str, bytes, Mapping[str, str]], Answer]
"""Sends a request: its method, its path below ``/api/v1``, its body, and its headers."""


def asking_api(app: App) -> Ask:
    """Return what asks the API with a client's key."""

    def ask(method: str, path: str, raw: bytes, headers: Mapping[str, str]) -> Answer:
        sent = {"Authorization": f"Bearer {app.key}", **headers}
        answer = app.http.generic(
            method, f"/api/v1{path}", raw, content_type="application/json", headers=sent
        )
        body = answer.json() if answer.content else None
        return _answer(answer.status_code, body, answer.headers)

    return ask


def asking_memory(memory: MemoryService) -> Ask:
    """Return what asks a service in memory."""

    def ask(method: str, path: str, raw: bytes, headers: Mapping[str, str]) -> Answer:
        sent = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json", **headers}
        request = httpx.Request(method, f"{URL}/api/v1{path}", content=raw, headers=sent)
        answer = memory.respond(request)
        body = answer.json() if answer.content else None
        return _answer(answer.status_code, body, answer.headers)

    return ask


def answers_of(case: Case, ask: Ask) -> list[Answer]:
    """Return the answers to the requests of a case, one after another."""
    found: list[Answer] = []
    last_id = ""
    for step in case["steps"]:
        body = _at_their_time(step["body"]) if "body" in step else None
        raw = step["raw"] if "raw" in step else "" if body is None else json.dumps(body)
        headers = {"Idempotency-Key": step["key"]} if "key" in step else {}
        if "authorization" in step:
            headers["Authorization"] = step["authorization"]
        path = step.get("path", "/notifications").replace("{id}", last_id)
        answer = ask(step.get("method", "POST"), path, raw.encode(), headers)
        if isinstance(answer.body, dict) and answer.status < 400:
            last_id = answer.body.get("id", last_id)
        found.append(answer)
    return found


def check_answers(case: Case, answers: list[Answer]) -> None:
    """Compare answers with what a case says of them."""
    for step, answer in zip(case["steps"], answers, strict=True):
        code = step.get("code", "validation_failed" if "errors" in step else None)
        assert (answer.status, answer.code) == (step["status"], code), answer
        assert step.get("errors", {}).items() <= answer.errors.items(), answer
        assert answer.is_replayed == step.get("replayed", False)
        if "results" in step:
            results = answer.body["results"]
            codes = [(one.get("error") or {}).get("code") for one in results]
            assert codes == step["results"]


def _answer(status: int, body: Any, headers: Mapping[str, str]) -> Answer:
    is_problem = status >= 400
    return Answer(
        status=status,
        code=body["code"] if is_problem else None,
        errors={one["pointer"]: one["code"] for one in body["errors"]} if is_problem else {},
        is_replayed="Idempotent-Replayed" in headers,
        body=body,
    )


def _at_their_time(value: Any) -> Any:
    """Return a value with its times: ``$+60`` is in 60 seconds."""
    if isinstance(value, dict):
        return {name: _at_their_time(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_at_their_time(item) for item in value]
    if isinstance(value, str) and value.startswith(("$+", "$-")):
        return (utc_now() + timedelta(seconds=int(value[1:]))).isoformat()
    return value
