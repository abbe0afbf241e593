"""Every route and method, called without permission. Each route must have a sample request."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
import redis
from django.conf import settings
from django.test import Client as DjangoClient
from django.test import override_settings
from django.urls import resolve

from access.clients import inbox_tokens, registry
from access.clients.registry import INCLUDED_IN, NOT_IN_ADMIN
from access.models import Scope
from api.http.problems import MEDIA_TYPE
from devices.push_keys import new_key
from devices.tokens import device_id
from domain.channels import Channel
from domain.content import Content
from domain.states import DeliveryStatus
from domain.time import utc_now
from notifications.catalog import types
from notifyproject.db.collections import collection
from tests import conftest as database
from tests.support.clients.api import App, new_app
from tests.support.clients.inbox import claims_of
from tests.support.clients.inbox import token as inbox_token
from tests.support.clients.isolation_requests import (
    BROADCAST,
    BROWSER,
    PARTS,
    SAMPLES,
    Others,
    is_refused_as_live,
)
from tests.support.clients.routes import (
    APPS,
    INBOX,
    PATTERNS,
    ROUTES,
    VIEWS,
    Route,
    ask,
    filled,
    name_of,
    sample_of,
)
from tests.support.factories import notifications as factories
from tests.support.factories.digests import opened
from tests.support.openapi import api_operations
from tests.support.samples import sampled
from tests.support.tables import each_case

MARKER = "only-for-the-first-app"


@dataclass(kw_only=True)
class World:
    """The first client's objects, and the credentials of other clients."""

    first: App
    other: App
    plain: App
    """Every scope but admin, which is all of them."""
    guest: App
    """Creates notifications, so that the other clients have none."""
    without: dict[Scope, str]
    """Keys of apps that have every scope but this one, and those that include it."""
    only: dict[Scope, str]
    """Keys of apps that have only this scope."""
    revoked: str
    token: str
    named: dict[str, str]
    http: DjangoClient = field(default_factory=lambda: DjangoClient(raise_request_exception=False))

    def ask(self, route: Route, credential: str | None, method: str | None = None) -> Any:
        return ask(self.http, route, credential, named=self.named, method=method)

    def belongings(self) -> list[Any]:
        """Return the stored data that only the first client may access."""
        own = {"client_id": self.first.id}
        notifications = list(collection("notifications").find(own).sort("_id", 1))
        ids = [document["_id"] for document in notifications]
        of_them = {"notification_id": {"$in": ids}}
        return [
            notifications,
            list(collection("delivery_attempts").find(of_them).sort("_id", 1)),
            list(collection("inbox_visits").find(own)),
            list(collection("callbacks").find({"_id": self.first.id})),
            list(collection("callback_messages").find(own).sort("_id", 1)),
            list(collection("broadcasts").find(own)),
            list(collection("digests").find(own)),
            inbox_tokens.authenticate(self.token, now=utc_now()),
        ]


@pytest.fixture(scope="module")
def db(_restored: database.Restored, django_db_blocker: Any) -> Iterator[None]:
    """Share one database between all tests, because none changes the first client's data."""
    with django_db_blocker.unblock():
        types.invalidate_types()
        yield
        database._empty_what_was_written(restored=_restored)


@pytest.fixture(scope="module")
def world(db: None) -> Iterator[World]:
    valkey = redis.Redis.from_url(settings.REDIS_URL)
    valkey.flushdb()
    with override_settings(WEBPUSH_KEYS=(new_key().private_text,)):
        yield _world()
    valkey.flushdb()
    valkey.close()


def _world() -> World:
    first, revoked = new_app("first"), new_app("revoked")
    registry.revoke_key(prefix=revoked.key.split("_")[1], now=utc_now())
    adas_token = inbox_token(first)
    own: dict[str, Any] = {
        "client_id": first.id,
        "channels": [Channel.IN_APP],
        "content": Content(subject=MARKER, body=MARKER),
        "external_id": MARKER,
        "idempotency_key": "key-of-notifications",
        # Old enough for a clean-up, and not yet due to be deleted by MongoDB.
        "created_at": factories.NOON - timedelta(days=100),
        "purge_at": factories.NOON + timedelta(days=100),
    }
    in_inbox = factories.accepted(**own)
    deleted = factories.accepted(**own | {"idempotency_key": "key-of-deleted"})
    push = factories.settled(
        DeliveryStatus.SENT,
        channel=Channel.PUSH,
        client_id=first.id,
        content=Content(subject=MARKER, body=MARKER),
    )
    callback = {"url": f"https://hooks.example.com/{MARKER}", "events": ["delivery.failed"]}
    first.put("/callbacks", callback)
    _register_people(first)
    broadcast = {**BROADCAST, "content": {"subject": MARKER, "body": MARKER}}
    return World(
        first=first,
        other=new_app("other"),
        guest=new_app("guest"),
        plain=new_app("plain", *(scope for scope in Scope if scope is not Scope.ADMIN)),
        without={
            scope: new_app(
                f"without {scope}", *set(Scope) - {scope, Scope.ADMIN, *INCLUDED_IN.get(scope, ())}
            ).key
            for scope in Scope
        },
        only={scope: new_app(f"only {scope}", scope).key for scope in Scope},
        revoked=revoked.key,
        token=adas_token,
        named={
            "notification": str(in_inbox["_id"]),
            "deleted": str(deleted["_id"]),
            "push": str(push["_id"]),
            "device": device_id("a-token-of-adas"),
            "discarded": device_id("another-token-of-adas"),
            "browser": device_id(ADAS_BROWSER["endpoint"]),
            "jti": claims_of(adas_token)["jti"],
            "broadcast": first.post("/broadcasts", broadcast).json()["id"],
            "digest": str(opened(client_id=first.id, key=MARKER)["_id"]),
            "message": first.post("/callbacks/test").json()["id"],
            "type": "payment_confirmed",
            "tomorrow": (utc_now() + timedelta(days=1)).isoformat(),
        },
    )


ADAS_BROWSER = BROWSER | {"endpoint": "https://web.push.apple.com/adas"}


def _register_people(first: App) -> None:
    """Register recipients, devices, a topic member, a suppression, and a template."""
    for user_id in ("ada", "eve"):
        first.put(f"/recipients/{user_id}", {"email": f"{user_id}@example.com"})
    for device_token in ("a-token-of-adas", "another-token-of-adas"):
        device = {"user_id": "ada", "device_token": device_token, "platform": "ios"}
        first.put("/devices", device)
    browser = {"user_id": "ada", "subscription": ADAS_BROWSER, "platform": "web"}
    first.put("/devices", browser)
    first.send("/topics/news/members/ada", b"", method="PUT")
    for name in ("held", "discarded"):
        first.put(f"/limits/{name}", {"max": 3, "period_seconds": 604_800})
    first.put("/suppressions/email/held@example.com", {})
    first.post("/types/payment_confirmed/templates", {"parts": PARTS})


def test_every_route_has_a_sample() -> None:
    assert set(SAMPLES) == set(ROUTES)


def test_each_sample_resolves_to_its_route(world: World) -> None:
    for route in ROUTES:
        path = filled(sample_of(route).path, world.named).partition("?")[0]
        assert resolve(f"/api/v1{path}").url_name == route[0]


@each_case("route", ROUTES)
def test_request_without_valid_credentials_is_401(world: World, route: Route) -> None:
    ended = inbox_token(world.first, "ada")
    inbox_tokens.revoke(client_id=world.first.id, jti=claims_of(ended)["jti"], now=utc_now())
    unknown = f"ntf_{'a' * 10}_{'x' * 43}"
    before = world.belongings()
    for credential in (None, "", unknown, world.revoked, ended, f"{world.token}x"):
        answer = world.ask(route, credential)
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated")
        assert MARKER not in answer.content.decode()
    assert world.belongings() == before


@each_case("route", INBOX)
def test_api_key_opens_no_inbox_route(world: World, route: Route) -> None:
    assert world.ask(route, world.first.key).status_code == 401


@each_case("route", APPS)
def test_inbox_token_opens_no_client_route(world: World, route: Route) -> None:
    assert world.ask(route, world.token).status_code == 401


@each_case("route", APPS)
def test_request_without_the_scope_is_403(world: World, route: Route) -> None:
    before = world.belongings()
    answer = world.ask(route, world.without[VIEWS[route[0]].scopes[route[1]]])
    assert (answer.status_code, answer.json()["code"]) == (403, "insufficient_scope")
    needed = VIEWS[route[0]].scopes[route[1]]
    assert answer.json()["detail"] == f"The API key needs the scope `{needed}`."
    assert world.belongings() == before


@each_case("route", APPS)
def test_request_with_only_the_scope_is_allowed(world: World, route: Route) -> None:
    before = world.belongings()
    _restore(world, route)
    answer = world.ask(route, world.only[VIEWS[route[0]].scopes[route[1]]])
    assert is_refused_as_live(answer) or answer.status_code not in (401, 403)
    assert world.belongings() == before


def test_exactly_the_documented_scopes_are_allowed(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    described = _described_scopes()
    cases = [(route, scope) for route in APPS for scope in Scope]
    checked = sampled(cases, each=7)
    wrong = {}
    before = world.belongings()
    for route, scope in checked:
        documented = described[route]
        is_allowed = scope in {documented, *INCLUDED_IN.get(documented, ())} or (
            scope is Scope.ADMIN and documented not in NOT_IN_ADMIN
        )
        _restore(world, route)
        answer = world.ask(route, world.only[scope])
        status = answer.status_code
        is_refused = status == 403 and not is_refused_as_live(answer)
        if is_refused is is_allowed or status == 401:
            wrong[name_of(route), scope.value] = status
    assert wrong == {}
    assert world.belongings() == before
    with capsys.disabled():
        print(f"\nscopes: {len(checked)} of {len(cases)} requests, {len(wrong)} wrong")


def _described_scopes() -> dict[Route, Scope]:
    """Return the scope in the OpenAPI document of each route that takes an API key."""
    operations = {}
    for operation in api_operations().values():
        name = resolve(operation["path"].replace("{number}", "1")).url_name
        operations[name, operation["method"]] = operation
    return {route: Scope(operations[route]["x-scope"]) for route in APPS}


@each_case("name", VIEWS)
def test_method_is_answered_if_and_only_if_allow_lists_it(world: World, name: str) -> None:
    route = next(route for route in ROUTES if route[0] == name)
    credential = world.token if route in INBOX else world.first.key
    before = world.belongings()
    options = world.ask(route, credential, "OPTIONS")
    assert (options.status_code, options.content) == (200, b"")
    allowed = set(options.headers["Allow"].split(", "))
    handled = {method for other, method in ROUTES if other == name}
    assert allowed == handled | {"OPTIONS"} | ({"HEAD"} if "GET" in handled else set())
    for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "TRACE"} - allowed:
        answer = world.ask(route, credential, method)
        assert answer.status_code == 405, method
        assert set(answer.headers["Allow"].split(", ")) == allowed
    assert world.belongings() == before


@each_case("route", [route for route in ROUTES if route[1] == "GET"])
def test_head_has_the_status_and_the_permission_of_get(world: World, route: Route) -> None:
    credential = world.token if route in INBOX else world.first.key
    statuses = [world.ask(route, credential, method).status_code for method in ("GET", "HEAD")]
    assert statuses[0] == statuses[1]
    if route in APPS:
        answer = world.ask(route, world.without[VIEWS[route[0]].scopes["GET"]], "HEAD")
        assert answer.status_code == 403


@each_case("route", APPS)
def test_other_client_gets_only_shared_data(world: World, route: Route) -> None:
    before = world.belongings()
    for app in (world.guest,) if sample_of(route).makes else (world.plain, world.other):
        if app is world.plain and VIEWS[route[0]].scopes[route[1]] is Scope.ADMIN:
            continue
        _restore(world, route)
        _check(world, route, answer=world.ask(route, app.key), is_admin=app is world.other)
    assert world.belongings() == before


@each_case("route", INBOX)
def test_other_recipient_gets_nothing_of_an_inbox(world: World, route: Route) -> None:
    before = world.belongings()
    for stranger in (inbox_token(world.first, "eve"), inbox_token(world.other, "ada")):
        _check(world, route, answer=world.ask(route, stranger), is_admin=False)
    assert world.belongings() == before


SPELLINGS = (
    "{}/",
    "{}//",
    "/{}",
    "./{}",
    "x/../{}",
    "{}/.",
    "%2F{}",
    "{}%2F",
    "{}%2f..",
    "{}%252F",
    "..",
    "%2e%2e",
    "{}%00",
    "{}%0A",
    "%5C{}",
    "{};",
    "{};a=1",
    "{}%3F",
    "{}%23a",
    "%20{}",
    "{}%20",
    "{}%FF",
    "{}%E2%80%8B",
    "%E6%97%A5{}",
    "{}" * 200,
)
"""Spellings of a path parameter, and of identifiers that contain its value."""
PARAMETERS = [
    (route, name, spelling)
    for route in ROUTES
    for name in re.findall(r"\(\?P<(\w+)>", str(PATTERNS[route[0]]))
    for spelling in SPELLINGS
]


def test_other_spelling_of_a_path_reaches_no_stored_object(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    _register_people(world.first)
    before, checked = _everything(), sampled(PARAMETERS, each=5)
    for route, name, spelling in checked:
        credential = world.token if route in INBOX else world.first.key
        path = f"/api/v1{filled(sample_of(route).path, world.named)}"
        value = resolve(path).kwargs[name]
        head, _, tail = path.partition(f"/{value}")
        url = f"{head}/{spelling.replace('{}', value)}{tail}"
        answer = ask(world.http, route, credential, named=world.named, path=url)
        case = name_of(route), url
        assert answer.status_code < 500, case
        if answer.status_code >= 400:
            assert answer.headers["Content-Type"] == MEDIA_TYPE, case
            assert answer.json()["errors"] or answer.status_code in (404, 405, 409), case
        else:
            # An identifier of its own, of which nothing is stored.
            assert name in ("user_id", "address", "key"), case
            assert "ada@example.com" not in answer.content.decode(), case
            assert MARKER not in answer.content.decode(), case
    after = _everything()
    assert {key: after.get(key) for key in before} == before
    with capsys.disabled():
        print(f"\nspellings: {len(checked)} of {len(PARAMETERS)} requests")


def _everything() -> dict[tuple[str, Any], Any]:
    """Return all documents about people and of apps, by collection and ID."""
    names = ("recipients", "devices", "topic_members", "suppressions", "limits", "limit_counters")
    more = ("notifications", "broadcasts", "digests", "callbacks", "callback_messages")
    return {
        (name, document["_id"]): document
        for name in (*names, *more, "notification_types", "template_versions", "inbox_tokens")
        for document in collection(name).find()
    }


def _restore(world: World, route: Route) -> None:
    """Restore shared data that the previous client was allowed to delete."""
    if route[1] == "DELETE" and sample_of(route).others is Others.THE_COMPANYS:
        _register_people(world.first)


def _check(world: World, route: Route, *, answer: Any, is_admin: bool) -> None:
    sample, body = sample_of(route), answer.content.decode()
    match sample.others:
        case Others.NOT_FOUND:
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
        case Others.ELSEWHERE:
            assert answer.status_code == 421
        case Others.TESTERS:
            assert is_refused_as_live(answer)
        case Others.THE_COMPANYS:
            assert sample.why
            assert 200 <= answer.status_code < 300, body
        case Others.NOTHING:
            assert 200 <= answer.status_code < 300, body
            assert world.named["notification"] not in body
            if sample.empty:
                assert answer.json() == answer.json() | sample.empty
    # Decision 10: the admin scope exports the notifications of every client.
    if not (is_admin and route[0] == "recipient-export"):
        assert MARKER not in body
