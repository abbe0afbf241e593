"""The topic routes: members and lists."""

import pytest

from notifyproject.db.collections import collection
from tests.support.clients.api import Answer, App, pages, pointers

NEWS = "/topics/news/members"


def join(app: App, user_id: str, topic: str = "news") -> Answer:
    return app.send(f"/topics/{topic}/members/{user_id}", b"", method="PUT")


def leave(app: App, user_id: str) -> Answer:
    return app.delete(f"{NEWS}/{user_id}")


def members(answer: Answer) -> list[str]:
    return [result["user_id"] for result in answer.json()["results"]]


def test_member_joins_once_and_leaves(app: App) -> None:
    first, again = join(app, "ada"), join(app, "ada")
    assert (first.status_code, again.status_code) == (200, 200)
    assert first.json() == again.json()
    assert first.json().keys() == {"topic", "user_id", "created_at"}
    assert members(app.get(NEWS)) == ["ada"]
    assert leave(app, "ada").status_code == 204
    assert members(app.get(NEWS)) == []
    assert leave(app, "ada").status_code == 404


def test_empty_topic_has_an_empty_list(app: App) -> None:
    assert app.get(NEWS).json() == {"results": [], "next": None, "previous": None}


def test_members_are_paginated_by_user_id(app: App) -> None:
    for user_id in ("eve", "ada", "dan", "bob", "cyd"):
        join(app, user_id)
    join(app, "zoe", "new")
    join(app, "zoe", "news2")
    found = [[member["user_id"] for member in page] for page in pages(app.get, NEWS, limit=2)]
    assert found == [["ada", "bob"], ["cyd", "dan"], ["eve"]]


@pytest.mark.parametrize(
    "topic", ["News", "a.b", "a:b", "-news", "_", "$gt", "t" * 65, "no%20topic"]
)
def test_invalid_topic_is_refused(app: App, topic: str) -> None:
    answer = join(app, "ada", topic)
    assert (answer.status_code, pointers(answer)) == (422, {"": "invalid_topic"})
    assert app.get(f"/topics/{topic}/members").status_code == 404
    assert collection("topic_members").count_documents({}) == 0
