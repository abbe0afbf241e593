"""Every writing route of the API leaves an audit entry, or declares why it leaves none."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from bson import ObjectId
from django.contrib.admin.models import LogEntry

from callbacks import outbox
from devices.push_keys import new_key
from domain.states import DeliveryStatus
from domain.time import utc_now
from notifications.broadcasts import creation
from notifications.broadcasts.requests import BroadcastRequest
from notifications.intake.requests import Caller
from notifyproject.platform.audit import Unaudited
from tests.support.clients.api import App, new_app, request
from tests.support.clients.browsers import subscription
from tests.support.clients.inbox import token as inbox_token
from tests.support.clients.isolation_requests import (
    BROADCAST,
    KEY,
    SAMPLES,
    Others,
    is_refused_as_live,
)
from tests.support.clients.live_data import seed
from tests.support.clients.routes import INBOX, ROUTES, VIEWS, Route, ask, name_of, sample_of
from tests.support.factories import notifications as factories
from tests.support.factories.broadcasts import read
from tests.support.samples import sampled

WRITES = [route for route in ROUTES if route[1] != "GET"]
BROWSER = "https://web.push.apple.com/adas"
DECISIONS = frozenset(
    {"broadcast-review", "broadcast-approve", "broadcast-reject", "broadcast-override"}
)
"""Routes about a broadcast of another client, which awaits an approval."""
ADDRESSES = ("@example.com", "+44", "a-token-of")
NEW_MEMBER = replace(SAMPLES["topic-member", "PUT"], path="/topics/tea/members/bob")


@pytest.fixture
def client(db: None, settings: Any) -> tuple[App, dict[str, str]]:
    """Return a live client, and the IDs of its objects by name."""
    settings.WEBPUSH_KEYS = (new_key().private_text,)
    app = new_app("shop")
    return app, seed(app)


def in_state_for(route: Route, app: App, named: dict[str, str]) -> dict[str, str]:
    """Return the IDs with those of objects on which the route's action is allowed."""
    if route[0] in ("cancel", "reschedule"):
        later = (utc_now() + timedelta(hours=1)).isoformat()
        return {**named, "notification": app.notify(scheduled_at=later).json()["id"]}
    if route[0] == "retry":
        failed = factories.settled(DeliveryStatus.FAILED, client_id=app.id, expires_at=None)
        return {**named, "notification": str(failed["_id"])}
    if route[0] in DECISIONS:
        return {**named, "broadcast": awaiting(new_app("newsletter"))}
    if route in (("broadcast", "PUT"), ("broadcast-submit", "POST")):
        own = awaiting(app)
        if route[1] == "POST":
            assert app.put(f"/broadcasts/{own}", BROADCAST).status_code == 200
        return {**named, "broadcast": own}
    prepare(route, app, named)
    return named


def prepare(route: Route, app: App, named: dict[str, str]) -> None:
    """Let the client have what the route's action changes."""
    if route[0] == "by-key":
        later = request(scheduled_at=(utc_now() + timedelta(hours=1)).isoformat())
        app.post("/notifications", later, headers={"Idempotency-Key": KEY})
    if route == ("limit", "DELETE"):
        app.put("/limits/discarded", {"max": 3, "period_seconds": 604_800})
    if route == ("recipient-limit", "DELETE"):
        app.put("/recipients/ada/limits/held", {"max": 1})
    if route[0] in ("device-subscription", "inbox-browser"):
        body = {"user_id": "ada", "platform": "web", "subscription": subscription(BROWSER)}
        assert app.put("/devices", body).json()["id"] == named["browser"]
    if route[0] == "callback-replay":
        outbox.fail_pending(client_id=app.id, reason="a test")


def awaiting(app: App) -> str:
    """Return the ID of a broadcast of a client that awaits an approval."""
    request = msgspec.convert(BROADCAST, BroadcastRequest)
    caller = Caller(client_id=app.id, requires_approval=True)
    return str(creation.create(request, caller=caller, now=utc_now()).document["_id"])


def exemption(route: Route) -> Unaudited | None:
    declared: Unaudited | None = getattr(VIEWS[route[0]], "unaudited", {}).get(route[1])
    return declared


def entries(app: App) -> list[Any]:
    return list(LogEntry.objects.filter(user_id=app.id).order_by("pk"))


@pytest.mark.parametrize("route", sampled(WRITES, each=3), ids=name_of)
def test_write_is_in_the_audit_log_or_declares_why_not(
    client: tuple[App, dict[str, str]], route: Route, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SAMPLES, ("topic-member", "PUT"), NEW_MEMBER)
    app, named = client
    if sample_of(route).others is Others.TESTERS:
        app = new_app("tester", is_test=True)
    named = in_state_for(route, app, named)
    if route[0] in DECISIONS:
        seen = read(ObjectId(named["broadcast"]))["approval"]["fingerprint"]
        sample = SAMPLES[route]
        body = {**sample.body, "fingerprint": seen}
        monkeypatch.setitem(SAMPLES, route, replace(sample, body=body))
    before = len(entries(app))
    answer = ask(app.http, route, inbox_token(app) if route in INBOX else app.key, named=named)
    assert answer.status_code < 300, answer.content
    found = entries(app)[before:]
    if exemption(route) is not None:
        assert found == [], "it leaves an entry: remove the declaration"
        return
    assert len(found) == 1, "it leaves no entry: record one, or declare why not"
    by = "By the recipient: " if route in INBOX else "By client shop: "
    assert found[0].change_message.startswith(by)
    assert found[0].object_id
    assert found[0].content_type is not None
    text = f"{found[0].object_id} {found[0].object_repr} {found[0].change_message}"
    assert not any(address in text for address in ADDRESSES)


def test_read_is_not_in_the_audit_log(client: tuple[App, dict[str, str]]) -> None:
    app, named = client
    before = len(entries(app))
    for route in ROUTES:
        if route[1] == "GET" and route not in INBOX and route[0] != "recipient-export":
            ready = in_state_for(route, app, named)
            answer = ask(app.http, route, app.key, named=ready)
            assert is_refused_as_live(answer) or answer.status_code == 200
    assert len(entries(app)) == before


def test_refused_write_is_not_in_the_audit_log(client: tuple[App, dict[str, str]]) -> None:
    app, named = client
    before = len(entries(app))
    for route in WRITES:
        ask(app.http, route, None, named=named)
        ask(new_app(f"other-{name_of(route)}").http, route, "ntf_unknown", named=named)
    assert len(entries(app)) == before


def test_unchanged_registration_is_not_in_the_audit_log(app: App) -> None:
    device = {"user_id": "ada", "device_token": "adas-phone", "platform": "ios"}
    for _ in range(2):
        app.put("/recipients/ada", {"email": "ada@example.com"})
        app.put("/devices", device)
        app.put("/topics/news/members/ada", {})
    assert [entry.get_change_message() for entry in entries(app)] == [
        "By client app: Created.",
        "By client app: Created.",
        "By client app: Joined the topic news.",
    ]


def test_entry_names_the_changed_fields_but_no_value(app: App) -> None:
    app.put("/recipients/ada", {"email": "ada@example.com", "name": "Ada"})
    app.put("/recipients/ada", {"email": "else@example.com", "timezone": "Europe/Lisbon"})
    app.put("/devices", {"user_id": "ada", "device_token": "adas-phone", "platform": "ios"})
    app.put("/devices", {"user_id": "bob", "device_token": "adas-phone", "platform": "ios"})
    messages = [entry.get_change_message() for entry in entries(app)]
    assert messages[1] == "By client app: Changed: email, name, timezone."
    assert messages[3] == "By client app: Changed: user_id."
