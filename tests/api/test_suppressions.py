"""The suppression routes: creation, lifting, and lists."""

from typing import Any
from urllib.parse import quote

from django.contrib.admin.models import LogEntry

from domain.time import utc_now
from notifyproject.db.collections import collection
from recipients.models import SuppressionReason
from recipients.suppressions import anonymize
from tests.support.clients.api import Answer, App, pages, pointers
from tests.support.factories import notifications as factories
from tests.support.tables import each_case

ADA, PHONE = "ada@example.com", "+351912345678"
ONE = f"/suppressions/email/{ADA}"
R = SuppressionReason


def suppress(address: str = ADA, *, reason: R = R.HARD_BOUNCE, **fields: Any) -> None:
    factories.suppress(address, reason=reason, at=utc_now(), **fields)


def reasons_of(app: App, path: str = ONE) -> list[str]:
    return [result["reason"] for result in app.get(path).json()["results"]]


def test_address_is_suppressed_and_shown(app: App) -> None:
    answer = app.put(ONE, {})
    assert answer.status_code == 200
    shown = answer.json()
    assert shown == {
        "channel": "email",
        "address": ADA,
        "reason": "manual",
        "source": "api",
        "marketing_only": False,
        "created_at": shown["created_at"],
        "expires_at": None,
    }
    assert app.get(ONE).json()["results"] == [shown]
    assert app.get("/suppressions").json() == {"results": [shown], "next": None, "previous": None}
    assert app.notify().json()["delivery"][0]["status"] == "suppressed"


@each_case(
    "path, address",
    [
        (f"whatsapp/{PHONE}", PHONE),
        (f"whatsapp/{quote(PHONE)}", PHONE),
        ("email/Ada+News%40Example.COM", "ada+news@example.com"),
        ("email/a%2Fb@example.com", "a/b@example.com"),
    ],
)
def test_path_holds_the_address(app: App, path: str, address: str) -> None:
    assert app.put(f"/suppressions/{path}", {}).json()["address"] == address
    assert reasons_of(app, f"/suppressions/{path}") == ["manual"]
    assert app.delete(f"/suppressions/{path}").status_code == 200


def test_every_reason_can_be_imported(app: App) -> None:
    for reason in R:
        answer = app.put(ONE, {"reason": reason.value, "marketing_only": True})
        assert answer.json()["reason"] == reason
    assert set(reasons_of(app)) == set(R)


def test_manual_suppression_can_expire(app: App) -> None:
    answer = app.put(ONE, {"expires_at": "2099-01-01T00:00:00Z"})
    assert answer.json()["expires_at"] == "2099-01-01T00:00:00Z"


@each_case(
    "path, body, pointer, code",
    [
        ("email/ada", {}, "", "invalid_email"),
        ("whatsapp/912345678", {}, "", "invalid_phone"),
        (f"push/{ADA}", {}, "", "unknown_channel"),
        (f"pigeon/{ADA}", {}, "", "unknown_channel"),
        (f"email/{ADA}", {"reason": "because"}, "/reason", "unknown_reason"),
        (f"email/{ADA}", {"expires_at": "2020-01-01T00:00:00Z"}, "/expires_at", "in_the_past"),
        (f"email/{ADA}", {"expires_at": "2099-01-01T00:00:00"}, "/expires_at", "naive_datetime"),
        (
            f"email/{ADA}",
            {"reason": "complaint", "expires_at": "2099-01-01T00:00:00Z"},
            "/expires_at",
            "conflict",
        ),
        (f"email/{ADA}", {"source": "me"}, "/source", "unknown_field"),
    ],
)
def test_invalid_suppression_is_refused(
    app: App, path: str, body: Any, pointer: str, code: str
) -> None:
    answer = app.put(f"/suppressions/{path}", body)
    assert (answer.status_code, pointers(answer)) == (422, {pointer: code})
    assert collection("suppressions").count_documents({}) == 0


def test_lifting_a_bounce_keeps_the_unsubscription(app: App) -> None:
    suppress()
    suppress(reason=R.UNSUBSCRIBED, marketing_only=True)
    answer = app.delete(ONE)
    assert answer.status_code == 200
    assert answer.json() == {"lifted": ["hard_bounce"], "standing": ["unsubscribed"]}


@each_case("reason", [R.UNSUBSCRIBED, R.COMPLAINT])
def test_recipients_own_suppression_is_lifted_only_by_reason(app: App, reason: R) -> None:
    suppress(reason=reason)
    answer = app.delete(ONE)
    assert (answer.status_code, answer.json()["code"]) == (409, "recipient_opted_out")
    assert reasons_of(app) == [reason]
    assert app.delete(ONE, reason=reason.value).json() == {"lifted": [reason.value], "standing": []}


def test_only_the_named_reason_is_lifted(app: App) -> None:
    suppress()
    suppress(reason=R.MANUAL)
    assert app.delete(ONE, reason="manual").json()["standing"] == ["hard_bounce"]
    assert app.delete(ONE, reason="manual").status_code == 404


def test_unknown_suppression_cannot_be_lifted(app: App) -> None:
    for path in (ONE, "/suppressions/pigeon/x", "/suppressions/whatsapp/12"):
        assert app.delete(path).status_code == 404
    assert pointers(app.delete(ONE, reason="because")) == {"/reason": "unknown_value"}
    assert app.delete(ONE, why="x").json()["code"] == "unknown_parameter"


def test_lifting_is_audited_without_the_address(app: App) -> None:
    suppress()
    app.delete(ONE)
    entry = LogEntry.objects.get()
    assert entry.get_change_message() == "By client app: Lifted: hard_bounce on email."
    assert entry.user_id == app.id
    assert "ada@" not in f"{entry.object_id} {entry.object_repr}"


def addresses(answer: Answer) -> list[str]:
    return [result["address"] for result in answer.json()["results"]]


def test_list_is_paginated_and_filtered_by_channel_and_reason(app: App) -> None:
    for n in range(5):
        suppress(f"user{n}@example.com")
    for n in range(2):
        suppress(f"+35191234567{n}", channel="whatsapp", reason=R.COMPLAINT)
    everything = app.get("/suppressions").json()["results"]
    assert len(everything) == 7
    found = pages(app.get, "/suppressions", limit=3)
    assert found == [everything[:3], everything[3:6], everything[6:]]
    assert len(addresses(app.get("/suppressions", channel="whatsapp"))) == 2
    assert len(addresses(app.get("/suppressions", reason="hard_bounce"))) == 5
    assert addresses(app.get("/suppressions", channel="whatsapp", reason="hard_bounce")) == []
    anonymize([("whatsapp", "+351912345670")])
    assert None in addresses(app.get("/suppressions", channel="whatsapp")), "erased"


@each_case(
    "query, pointer, code",
    [
        ({"channel": "push"}, "/channel", "unknown_value"),
        ({"reason": "because"}, "/reason", "unknown_value"),
    ],
)
def test_invalid_list_query_is_refused(
    app: App, query: dict[str, str], pointer: str, code: str
) -> None:
    answer = app.get("/suppressions", **query)
    assert (answer.status_code, pointers(answer)) == (422, {pointer: code})


@each_case("channel", ["push", "pigeon"])
def test_channel_without_suppressions_is_not_found(app: App, channel: str) -> None:
    assert app.get(f"/suppressions/{channel}/{ADA}").status_code == 404


def test_address_with_blanks_is_the_suppressed_one(app: App) -> None:
    app.put("/suppressions/whatsapp/+351912345678", {})
    app.put("/suppressions/email/ada@example.com", {})
    recipient = {"email": " ada@example.com\u200b", "phone": "\u202a+351912345678\u202c"}
    sent = app.notify(recipient=recipient, channels=["email", "whatsapp"]).json()
    assert {delivery["failure_code"] for delivery in sent["delivery"]} == {"suppressed"}
    assert app.get("/suppressions/email/%20ada@example.com%20").json()["results"]
