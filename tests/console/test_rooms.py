"""The form of a room when another user is faster, its secret, and its circuit."""

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from django.contrib.messages import get_messages
from django.test import Client

from delivery import circuit_breaker
from delivery.circuit_breaker import CircuitReporter
from domain.channels import ROOM
from domain.rooms import RoomKind
from domain.time import utc_now
from providers.registry import providers_for
from rooms import registry

pytestmark = pytest.mark.usefixtures("db", "broker")

URL = "/admin/rooms/room/"
WEBHOOK, CHANNEL = "https://hooks.slack.com/services/T0ADA/B0ADA/x", "C024BE91L"
FORM = {"slug": "ops", "name": "Operations", "kind": "slack_webhook", "min_gap_seconds": "1"}


def create(slug: str = "ops", kind: RoomKind = RoomKind.SLACK_WEBHOOK) -> None:
    target = {RoomKind.SLACK_WEBHOOK: WEBHOOK, RoomKind.WEBHOOK: "https://shop.example/hook"}[kind]
    registry.create(
        slug=slug, kind=kind, name="Ours", target=target, min_gap_seconds=1, now=utc_now()
    )


def at_check(number: int, act: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Act once, at a check of the target: the first is the form's, the second before the write."""
    check, calls = registry.check, count(1)

    def check_and_act(kind: str, target: str) -> str:
        if next(calls) == number:
            act_alone()
        return check(kind, target)

    def act_alone() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(registry, "check", check)
            act()

    monkeypatch.setattr(registry, "check", check_and_act)


def errors(answer: Any) -> dict[str, Any]:
    assert answer.status_code == 200
    return dict(answer.context["adminform"].form.errors)


def said(answer: Any) -> str:
    return " ".join(map(str, get_messages(answer.wsgi_request)))


def test_room_that_another_has_created_is_not_replaced(
    console: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_check(2, create, monkeypatch)
    answer = console.post(f"{URL}add/", FORM | {"address": WEBHOOK})
    assert errors(answer) == {"slug": ["There is a room with this ID."]}
    assert 'value="Operations"' in answer.content.decode(), "what was entered is kept"
    assert registry.get("ops")["name"] == "Ours"


def test_room_that_another_has_removed_is_not_stored_again(
    console: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    create()
    at_check(2, lambda: registry.remove("ops"), monkeypatch)
    answer = console.post(f"{URL}ops/change/", FORM | {"address": f"{WEBHOOK}y"})
    assert (answer.status_code, "Perhaps it was deleted?" in said(answer)) == (302, True)
    assert registry.all_rooms() == []


def test_number_of_rooms_is_limited(console: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "MAX_ROOMS", 2)
    create("one")
    at_check(1, lambda: create("two"), monkeypatch)
    answer = console.post(f"{URL}add/", FORM | {"address": WEBHOOK})
    assert errors(answer) == {"__all__": ["There are 1,000 rooms already. Remove one first."]}
    assert [room["_id"] for room in registry.all_rooms()] == ["one", "two"]


@pytest.mark.parametrize(
    ("kind", "expected"), [(RoomKind.SLACK_WEBHOOK, 0), (RoomKind.WEBHOOK, 2), (None, 0)]
)
def test_only_a_webhook_has_a_secret(console: Client, kind: RoomKind | None, expected: int) -> None:
    if kind is not None:
        create(kind=kind)
    answer = console.post(f"{URL}ops/rotate/")
    assert answer.status_code == 302
    assert ("shown once: whsec_" if expected else "Webhook not found.") in said(answer)
    assert [len(room["secrets"]) for room in registry.all_rooms()] == [expected][: kind is not None]


@pytest.mark.parametrize(
    ("path", "fields"), [("change", {"address": f"{WEBHOOK}y"}), ("enable", {})]
)
def test_repair_closes_the_circuits_of_the_room_alone(
    console: Client, path: str, fields: dict[str, str]
) -> None:
    now = utc_now()
    for slug in ("ops", "dev"):
        create(slug)
        registry.disable(slug, now=now)
        for provider in providers_for(ROOM):
            name = circuit_breaker.circuit_name(provider, slug)
            CircuitReporter().trip(name, now=now, retry_after=600)
    assert console.post(f"{URL}ops/{path}/", FORM | fields).status_code == 302
    circuits = circuit_breaker.circuit_states(now=now) or ()
    left = {circuit.scope for circuit in circuits if circuit.opened_at is not None}
    assert left == {"dev"}
    assert registry.takes_messages("ops")
