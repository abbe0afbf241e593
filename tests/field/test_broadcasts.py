"""A broadcast is sent once, and to a topic that exists.

A campaign went out again: https://github.com/knadh/listmonk/issues/1801.
"""

import json
from datetime import timedelta

import pytest

from access.models import Scope
from domain.time import utc_now
from notifyproject.db.collections import collection
from tests.support.clients.api import Answer, App, new_app, pointers

BODY = {
    "type": "marketing",
    "audience": {"topic": "newsletter"},
    "content": {"subject": "Spring", "body": "It is spring."},
}
KEY = {"Idempotency-Key": "spring"}


@pytest.fixture
def reader(app: App) -> App:
    app.put("/recipients/ada", {"email": "ada@example.com"})
    app.send("/topics/newsletter/members/ada", b"", method="PUT")
    return app


def create(app: App, *, topic: str = "newsletter", **fields: str) -> Answer:
    body = {**BODY, "audience": {"topic": topic}, **fields}
    return app.post("/broadcasts", body, headers=KEY)


def test_broadcast_without_a_key_is_refused(reader: App) -> None:
    answer = reader.send("/broadcasts", json.dumps(BODY).encode())
    assert (answer.status_code, answer.json()["code"]) == (400, "missing_idempotency_key")
    assert collection("broadcasts").count_documents({}) == 0


def test_repeated_broadcast_is_the_same(reader: App) -> None:
    first, again = create(reader), create(reader)
    assert first.json()["id"] == again.json()["id"]
    assert again.headers["Idempotent-Replayed"] == "true"
    assert collection("broadcasts").count_documents({}) == 1


def test_topic_that_nobody_is_in_is_refused_with_the_nearest(reader: App) -> None:
    answer = create(reader, topic="newsleter")
    assert pointers(answer) == {"/audience/topic": "unknown_topic"}
    assert "Did you mean `newsletter`?" in answer.json()["errors"][0]["detail"]
    near = {**BODY, "audience": {"topic": "newsleter"}}
    preview = reader.post("/broadcasts/preview", near)
    assert pointers(preview) == {"/audience/topic": "unknown_topic"}
    # A topic's name may say who its members are, so only who may list topics is told one.
    sender = new_app("sender", Scope.NOTIFICATIONS_WRITE)
    for answer in (create(sender, topic="newsleter"), sender.post("/broadcasts/preview", near)):
        assert pointers(answer) == {"/audience/topic": "unknown_topic"}
        assert "newsletter" not in answer.json()["errors"][0]["detail"]
    at = (utc_now() + timedelta(days=1)).isoformat()
    assert create(reader, topic="news", scheduled_at=at).status_code == 202


def test_topics_are_listed_in_pages(app: App) -> None:
    for topic in ("c", "a", "b", "news"):
        for user_id in ("ada", "bob"):
            app.send(f"/topics/{topic}/members/{user_id}", b"", method="PUT")
    first = app.get("/topics", limit=3).json()
    assert [result["name"] for result in first["results"]] == ["a", "b", "c"]
    rest = app.get("/topics", limit=3, cursor=first["next"]).json()
    assert ([result["name"] for result in rest["results"]], rest["next"]) == (["news"], None)
    assert app.get("/topics", colour=1).status_code == 400
