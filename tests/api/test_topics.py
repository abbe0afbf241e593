"""The topic routes: members and lists."""

from notifyproject.db.collections import collection
from tests.support.clients.api import Answer, App, pages, pointers
from tests.support.tables import each_case

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


def test_members_are_paginated_by_user_id(app: App) -> None:
    for user_id in ("eve", "ada", "dan", "bob", "cyd"):
        join(app, user_id)
    join(app, "zoe", "new")
    join(app, "zoe", "news2")
    found = [[member["user_id"] for member in page] for page in pages(app.get, NEWS, limit=2)]
    assert found == [["ada", "bob"], ["cyd", "dan"], ["eve"]]


@each_case("topic", ["News", "a.b", "a:b", "-news", "_", "$gt", "t" * 65, "no%20topic"])
def test_invalid_topic_is_refused(app: App, topic: str) -> None:
    answer = join(app, "ada", topic)
    assert (answer.status_code, pointers(answer)) == (422, {"": "invalid_topic"})
    assert app.get(f"/topics/{topic}/members").status_code == 404
    assert collection("topic_members").count_documents({}) == 0


def test_topics_are_listed_in_pages(app: App) -> None:
    for topic in ("c", "a", "b", "news"):
        for user_id in ("ada", "bob"):
            join(app, user_id, topic)
    first = app.get("/topics", limit=3).json()
    assert [result["name"] for result in first["results"]] == ["a", "b", "c"]
    rest = app.get("/topics", limit=3, cursor=first["next"]).json()
    assert ([result["name"] for result in rest["results"]], rest["next"]) == (["news"], None)
    assert app.get("/topics", colour=1).status_code == 400
