"""A client of the API."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from bson import ObjectId
from django.conf import settings
from django.test import Client as DjangoClient

from access.clients import registry
from access.models import Scope
from api.http.problems import MEDIA_TYPE
from domain.time import utc_now
from notifyproject.platform import broker
from tests.support.waiting import until

Answer = Any


@dataclass(kw_only=True)
class App:
    """An API client with a key, which checks the format of every problem response."""

    id: ObjectId
    key: str
    http: DjangoClient = field(default_factory=lambda: DjangoClient(raise_request_exception=False))

    def get(self, path: str, **query: Any) -> Answer:
        return self._checked(self.http.get(f"/api/v1{path}", query, headers=self._headers({})))

    def post(
        self, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None
    ) -> Answer:
        raw = json.dumps(body, ensure_ascii=False).encode("utf-8") if body is not None else b""
        if path in ("/broadcasts", "/files"):
            # Required, and another one for each unless a test says otherwise.
            headers = {"Idempotency-Key": uuid4().hex, **(headers or {})}
        return self.send(path, raw, headers=headers)

    def put(self, path: str, body: Any) -> Answer:
        return self.send(path, json.dumps(body).encode(), method="PUT")

    def delete(self, path: str, **query: Any) -> Answer:
        url = f"/api/v1{path}"
        return self._checked(self.http.delete(url, query_params=query, headers=self._headers({})))

    def send(
        self,
        path: str,
        raw: bytes,
        *,
        method: str = "POST",
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
        **environ: Any,
    ) -> Answer:
        return self._checked(
            self.http.generic(
                method,
                f"/api/v1{path}",
                raw,
                content_type=content_type,
                headers=self._headers(headers or {}),
                **environ,
            )
        )

    def notify(self, **fields: Any) -> Answer:
        """POST a valid notification with these fields. The value ... leaves a field out."""
        return self.post("/notifications", request(**fields))

    def _headers(self, more: Mapping[str, str]) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}", **more}

    def _checked(self, answer: Answer) -> Answer:
        assert answer.headers["X-Request-Id"]
        if answer.status_code >= 400:
            assert answer.headers["Content-Type"] == MEDIA_TYPE
            body = answer.json()
            assert body["status"] == answer.status_code
            assert {"type", "title", "detail", "instance", "code", "request_id"} <= body.keys()
        assert answer.status_code != 500
        return answer


def request(**fields: Any) -> dict[str, Any]:
    """Return a valid request with these fields. The value ... leaves a field out."""
    body = {
        "type": "payment_confirmed",
        "recipient": {"email": "ada@example.com"},
        "data": {"order_id": 1001, "video_title": "Sunrise", "amount": "49.90"},
        **fields,
    }
    return {name: value for name, value in body.items() if value is not ...}


def pointers(answer: Answer) -> dict[str, str]:
    """Return the codes of an answer's problems by pointer."""
    return {error["pointer"]: error["code"] for error in answer.json()["errors"]}


def pages(get: Callable[..., Answer], *path: str, limit: int, **query: Any) -> list[list[Any]]:
    """Return every page of a list, and check that the cursors lead back over the same pages."""
    page = get(*path, limit=limit, **query).json()
    found = [page["results"]]
    assert page["previous"] is None
    while page["next"]:
        page = get(*path, limit=limit, cursor=page["next"], **query).json()
        found.append(page["results"])
    for results in found[-2::-1]:
        page = get(*path, limit=limit, cursor=page["previous"], **query).json()
        assert page["results"] == results
        assert page["next"]
    assert page["previous"] is None
    return found


def new_app(name: str, *scopes: Scope, is_test: bool = False) -> App:
    """Create an API client with these scopes, or with all scopes."""
    now = utc_now()
    client_id = registry.create_client(
        name=name, scopes=list(scopes or Scope), is_test=is_test, now=now
    )
    return App(id=client_id, key=registry.issue_key(client_id=client_id, now=now).text)


def when(app: App, answer: Any, *statuses: str) -> dict[str, Any]:
    """Wait until a created notification has one of these statuses. Return the notification."""
    path = f"/notifications/{answer.json()['id']}"

    def current() -> dict[str, Any] | None:
        notification = app.get(path).json()
        return notification if notification["status"] in statuses else None

    def otherwise() -> str:
        depths = broker.queue_depths([queue.name for queue in settings.CELERY_TASK_QUEUES])
        delivery = app.get(path).json()["delivery"]
        attempts = app.get(f"{path}/attempts").json()["results"]
        return f"not {' or '.join(statuses)}: {delivery=}, {attempts=}, {depths=}"

    return until(current, otherwise=otherwise)
