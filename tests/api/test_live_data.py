"""Requests with a test key to every route and method leave live data unchanged."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import redis
from django.conf import settings

from access.clients.authentication import SafeWrite
from notifications.catalog import types
from notifyproject.db.collections import collection
from tests import conftest as database
from tests.support.clients.api import App, new_app
from tests.support.clients.inbox import token as inbox_token
from tests.support.clients.isolation_requests import KEY
from tests.support.clients.live_data import Untouched, belongings, dump, seed
from tests.support.clients.routes import INBOX, ROUTES, VIEWS, Route, ask, name_of

READS = frozenset({"GET", "HEAD", "OPTIONS"})
WRITES = [route for route in ROUTES if route[1] not in READS]
KEYS = [KEY, *(f"key-of-{name}" for name, _ in ROUTES)]


@dataclass(kw_only=True)
class World:
    """A live client, a test client with every scope, and their data."""

    live: App
    tester: App
    lives: dict[str, str]
    untouched: Untouched

    def ask(self, route: Route, named: dict[str, str]) -> Any:
        """Send a route's sample with the test client's key, or with an inbox token of its user."""
        # A new token each time, because one of the samples revokes all tokens.
        credential = inbox_token(self.tester) if route in INBOX else self.tester.key
        return ask(self.tester.http, route, credential, named=named)

    def own(self) -> dict[str, str]:
        """Create new data of the test client, because the previous test may have removed some."""
        return belongings(self.tester, is_test=True)


@pytest.fixture(scope="module")
def db(_restored: database.Restored, django_db_blocker: Any) -> Iterator[None]:
    """Share one database between all tests, because its live data never changes."""
    with django_db_blocker.unblock():
        types.invalidate_types()
        yield
        database._empty_what_was_written(restored=_restored)


@pytest.fixture(scope="module")
def world(db: None) -> Iterator[World]:
    valkey = redis.Redis.from_url(settings.REDIS_URL)
    valkey.flushdb()
    live, tester = new_app("live"), new_app("tester", is_test=True)
    lives = seed(live)
    for route in WRITES:
        if route[0] in ("notifications", "bulk", "broadcasts"):
            # The live app has used the same idempotency keys, for the same requests.
            assert ask(live.http, route, live.key, named=lives).status_code < 300
    untouched = Untouched(tester=tester, keys=KEYS)
    yield World(live=live, tester=tester, lives=lives, untouched=untouched)
    valkey.flushdb()
    valkey.close()


def _stored() -> dict[tuple[str, str], dict[str, Any]]:
    """Return every document, without the time of a key's last use, which each request may write."""
    everything = {key: dict(document) for key, document in dump().items()}
    for (name, _), document in everything.items():
        if name == "api_clients":
            keys = [dict(key) for key in document["keys"]]
            document["keys"] = [{**key, "last_used_at": None} for key in keys]
    return everything


def safe(route: Route) -> SafeWrite | None:
    """Return the declared reason why a test key may use a writing route; None if it may not."""
    declared: SafeWrite | None = getattr(VIEWS[route[0]], "test_mode", {}).get(route[1])
    return declared


def test_live_data_covers_every_collection(world: World) -> None:
    filled = {name for name, _ in world.untouched.before}
    assert filled >= {
        "notifications",
        "delivery_attempts",
        "broadcasts",
        "digests",
        "recipients",
        "topic_members",
        "devices",
        "suppressions",
        "soft_bounces",
        "service_windows",
        "notification_types",
        "template_versions",
        "callbacks",
        "callback_messages",
        "api_clients",
        "idempotency_keys",
        "inbox_visits",
        "inbox_revocations",
        "django_admin_log",
    }


@pytest.mark.parametrize("route", WRITES, ids=name_of)
def test_write_is_declared_safe_or_refused_and_leaves_live_data_unchanged(
    world: World, route: Route
) -> None:
    on_live = world.ask(route, world.lives)
    on_own = world.ask(route, world.own())
    world.untouched.check()
    if safe(route) is None:
        for answer in (on_live, on_own):
            assert (answer.status_code, answer.json()["code"]) == (403, "test_key")
            assert "Use a live key" in answer.json()["detail"]
    else:
        assert on_live.status_code < 300 or on_live.status_code in (404, 409)
        assert on_own.status_code < 300 or on_own.status_code == 409, on_own.content


def test_reads_leave_live_data_unchanged(world: World) -> None:
    own = world.own()
    for route in ROUTES:
        if route not in WRITES:
            for named in (world.lives, own):
                world.ask(route, named)
            world.untouched.check()


@pytest.mark.parametrize(
    "route", [write for write in WRITES if safe(write) is SafeWrite.NOTHING], ids=name_of
)
def test_route_declared_as_storing_nothing_stores_nothing(world: World, route: Route) -> None:
    own = world.own()
    before = _stored()
    assert world.ask(route, own).status_code < 300
    assert _stored() == before


@pytest.mark.parametrize(
    "route", [write for write in WRITES if safe(write) is SafeWrite.MARKED], ids=name_of
)
def test_route_declared_as_marked_marks_tests(world: World, route: Route) -> None:
    name = "broadcasts" if route[0] == "broadcasts" else "notifications"
    live_keys = [key for kind, key in world.untouched.before if kind == "idempotency_keys"]
    collection("idempotency_keys").delete_many({"_id": {"$nin": live_keys}})
    # A test clock may have sent it, and then it isn't replaced.
    for sent in collection("notifications").find({"idempotency_key": KEY, "is_test": True}):
        collection("delivery_attempts").delete_many({"notification_id": sent["_id"]})
        collection("notifications").delete_one({"_id": sent["_id"]})
    before = collection(name).count_documents({"is_test": True})
    assert world.ask(route, world.own()).status_code < 300
    assert collection(name).count_documents({"is_test": True}) > before
    world.untouched.check()


def test_comparison_detects_changes_by_a_live_key(db: None) -> None:
    live, tester = new_app("another live"), new_app("another tester", is_test=True)
    live.put("/recipients/zoe", {"email": "zoe@example.com"})
    untouched = Untouched(tester=tester)
    live.put("/recipients/zoe", {"email": "else@example.com"})
    with pytest.raises(AssertionError, match="changed or removed live data"):
        untouched.check()
    untouched = Untouched(tester=tester)
    live.put("/recipients/yan", {"email": "yan@example.com"})
    with pytest.raises(AssertionError, match="stored live data"):
        untouched.check()
    live.delete("/recipients/yan")
    untouched = Untouched(tester=tester)
    live.delete("/recipients/zoe")
    with pytest.raises(AssertionError, match="changed or removed live data"):
        untouched.check()
