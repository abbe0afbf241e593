"""Notifications that can reach nobody: their status, the warning, and the retry once they can."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId

from callbacks.events import EventType
from devices.preferences import Preferences
from domain.errors import FailureCode
from domain.states import DeliveryStatus
from domain.time import utc_now
from notifications import callback_events
from notifications.store import leases
from notifications.store.claims import NotSent
from notifyproject.db.collections import collection
from recipients import suppressions
from recipients.models import SuppressionReason
from tests.support.clients.api import App
from tests.support.factories import notifications as factories
from tests.support.mongo.query_plans import plans
from tests.support.tables import each_case

PHONE = "+351912345678"
MUTES_ALL = Preferences(enabled=False)


def muted(user_id: str = "ada", **preference: Any) -> None:
    preferences = {"payment_confirmed": preference or {"muted": True}}
    collection("recipients").replace_one(
        {"_id": user_id}, {"is_active": True, "preferences": preferences}, upsert=True
    )


def registered(**fields: Any) -> None:
    document = {"is_active": True, "preferences": {}, **fields}
    collection("recipients").replace_one({"_id": "ada"}, document, upsert=True)


def lifted() -> None:
    collection("suppressions").delete_many({})


def device(**fields: Any) -> None:
    factories.device("token-a", **fields)


def inactive_device() -> None:
    device()
    collection("devices").update_many({}, {"$set": {"is_active": False}})


def nothing() -> None:
    return None


PUSH = {"channels": ["push"], "user_id": "ada", "recipient": {}}
WHATSAPP = {"channels": ["whatsapp"], "recipient": {"phone": PHONE}}
UNREACHED: dict[str, tuple[Callable[[], Any], dict[str, Any], str, Callable[[], Any]]] = {
    "push without a device": (nothing, PUSH, "push: no_address", device),
    "push to devices that mute": (
        lambda: device(preferences=MUTES_ALL),
        PUSH,
        "push: opted_out",
        lambda: device(preferences=Preferences()),
    ),
    "push to an inactive device": (
        inactive_device,
        PUSH,
        "push: no_address",
        device,
    ),
    "suppressed email": (
        factories.suppress,
        {"channels": ["email"]},
        "email: suppressed",
        lifted,
    ),
    "suppressed phone": (
        lambda: factories.suppress(
            PHONE, channel="whatsapp", reason=SuppressionReason.UNSUBSCRIBED
        ),
        WHATSAPP,
        "whatsapp: suppressed",
        lifted,
    ),
    "muted type": (muted, {"user_id": "ada"}, "email: opted_out", registered),
    "muted channel": (
        lambda: muted(muted_channels=["email"]),
        {"user_id": "ada", "channels": ["email"]},
        "email: opted_out",
        registered,
    ),
    "muted inbox": (
        muted,
        {"user_id": "ada", "channels": ["in_app"]},
        "in_app: opted_out",
        registered,
    ),
}


@pytest.fixture(autouse=True)
def types(shipped_types: None) -> None:
    """Use the shipped types."""


def send(app: App, fields: dict[str, Any]) -> dict[str, Any]:
    answer = app.notify(**fields)
    assert answer.status_code == 202, answer.content
    return dict(answer.json())


def stored(app: App, document: dict[str, Any]) -> dict[str, Any]:
    return dict(app.get(f"/notifications/{document['id']}").json())


def worked_off(document: dict[str, Any]) -> None:
    """End a push as the worker does that finds nobody to send it to."""
    for warning in document["warnings"]:
        collection("notifications").update_one(
            {"external_id": document["external_id"], "delivery.channel": warning["channel"]},
            {
                "$set": {
                    "delivery.$.status": "suppressed",
                    "delivery.$.failure_code": warning["code"],
                    "delivery.$.next_attempt_at": None,
                    "status": "suppressed",
                },
                "$unset": {"due_at": ""},
            },
        )


@pytest.mark.parametrize("case", UNREACHED)
def test_warning_says_that_nobody_is_reached_and_a_retry_sends_it_later(
    app: App, case: str
) -> None:
    cause, fields, warning, end = UNREACHED[case]
    cause()
    accepted = send(app, {"external_id": "o-1", **fields})
    assert [f"{warning['channel']}: {warning['code']}" for warning in accepted["warnings"]] == [
        warning
    ]
    worked_off(accepted)
    shown = stored(app, accepted)
    assert (shown["status"], shown["phase"]) == ("suppressed", "failed")
    assert (shown["is_failed"], shown["is_delivered"], shown["can_retry"]) == (False, False, False)
    refused = app.post(f"/notifications/{shown['id']}/retry")
    assert refused.status_code == 409
    end()
    assert stored(app, accepted)["can_retry"] is True
    answer = app.post(f"/notifications/{shown['id']}/retry")
    assert answer.status_code == 202, answer.content
    (delivery,) = answer.json()["delivery"]
    assert (delivery["status"], delivery["failure_code"]) == ("pending", None)
    assert answer.json()["status"] == "queued"
    assert app.post(f"/notifications/{shown['id']}/retry").status_code == 409


@pytest.mark.parametrize(
    ("fields", "code", "detail"),
    [
        (PUSH, "invalid_state", "No device registered."),
        ({"channels": ["email"]}, "recipient_suppressed", "The address is suppressed: manual."),
    ],
)
def test_refused_retry_says_what_still_prevents_it(
    app: App, fields: dict[str, Any], code: str, detail: str
) -> None:
    factories.suppress(reason=SuppressionReason.MANUAL)
    accepted = send(app, {"external_id": "o-1", **fields})
    worked_off(accepted)
    answer = app.post(f"/notifications/{accepted['id']}/retry").json()
    assert (answer["code"], answer["detail"]) == (code, detail)


@pytest.mark.parametrize(
    ("channel", "field", "address"),
    [("email", "email", "ada@example.com"), ("whatsapp", "phone", PHONE)],
)
def test_message_without_an_address_goes_to_the_one_that_is_registered_later(
    app: App, channel: str, field: str, address: str
) -> None:
    registered(preferences={"payment_confirmed": {"channels": [channel, "in_app"]}})
    accepted = send(app, {"user_id": "ada", "recipient": {}})
    states = {delivery["channel"]: delivery["status"] for delivery in accepted["delivery"]}
    assert states == {channel: "suppressed", "in_app": "delivered"}
    registered(**{field: address})
    assert stored(app, accepted)["can_retry"] is True
    answer = app.post(f"/notifications/{accepted['id']}/retry").json()
    assert answer["recipient"][field] == address
    factories.suppress(address, channel=channel)
    other = send(app, {"user_id": "ada", "recipient": {}, "channels": ["in_app"]})
    assert stored(app, other)["can_retry"] is False


def test_registered_address_that_is_suppressed_isnt_used(app: App) -> None:
    registered(preferences={"payment_confirmed": {"channels": ["email", "in_app"]}})
    accepted = send(app, {"user_id": "ada", "recipient": {}})
    registered(email="ada@example.com")
    factories.suppress()
    assert stored(app, accepted)["can_retry"] is False
    assert app.post(f"/notifications/{accepted['id']}/retry").json()["code"] == (
        "recipient_suppressed"
    )


def test_retry_of_all_leaves_a_channel_out_that_still_reaches_nobody(app: App) -> None:
    factories.suppress()
    fields = {**WHATSAPP, "channels": ["email", "whatsapp"]}
    fields["recipient"] = {"email": "ada@example.com", "phone": PHONE}
    factories.suppress(PHONE, channel="whatsapp", reason=SuppressionReason.MANUAL)
    accepted = send(app, fields)
    assert accepted["status"] == "suppressed"
    lifted_phone = suppressions.find_by_address(channel="whatsapp", address=PHONE)
    assert [suppressions.lift_one(suppression["_id"]) for suppression in lifted_phone] == [True]
    answer = app.post(f"/notifications/{accepted['id']}/retry").json()
    assert [delivery["status"] for delivery in answer["delivery"]] == ["suppressed", "pending"]
    named = app.post(f"/notifications/{accepted['id']}/retry", {"channels": ["email"]})
    assert named.json()["code"] == "recipient_suppressed"


def test_step_of_a_plan_isnt_sent_after_another_one(app: App) -> None:
    steps = [{"channels": ["push"]}, {"channels": ["email"], "after": 600}]
    fields = {"plan": {"steps": steps}, "user_id": "ada"}
    accepted = send(app, fields)
    path = {"_id": ObjectId(accepted["id"])}
    ended = {"delivery.0.status": "suppressed", "delivery.0.failure_code": "no_address"}
    collection("notifications").update_one(path, {"$set": ended})
    device()
    assert stored(app, accepted)["can_retry"] is True
    collection("notifications").update_one(path, {"$set": {"delivery.1.status": "delivered"}})
    assert stored(app, accepted)["can_retry"] is False


@pytest.mark.parametrize(
    ("fields", "state"),
    [
        ({"expires_at": utc_now() - timedelta(minutes=1)}, "expired"),
        ({"content_removed_at": utc_now()}, "removed"),
        ({"is_active": False}, "deleted"),
        ({"content.is_masked": True}, "destroyed"),
        ({"delivery.0.failure_code": "over_limit"}, "over a limit"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_suppressed_notification_that_cant_be_sent_again_says_so(
    app: App, fields: dict[str, Any], state: str
) -> None:
    accepted = send(app, {"external_id": "o-1", **PUSH})
    worked_off(accepted)
    device()
    found = {"_id": ObjectId(accepted["id"])}
    collection("notifications").update_one(found, {"$set": fields})
    assert stored(app, accepted)["can_retry"] is False, state
    assert app.post(f"/notifications/{accepted['id']}/retry").status_code in (404, 409)


@each_case(
    "fields, reads",
    [({}, 0), ({"user_id": "ada"}, 0), ({"channels": "all", "user_id": "ada"}, 0), (PUSH, 1)],
)
def test_only_a_push_by_name_reads_devices(app: App, fields: dict[str, Any], reads: int) -> None:
    with plans("devices") as found:
        send(app, fields)
    assert len(found) == reads


def test_channel_that_isnt_named_has_no_warning_while_another_one_is_sent(app: App) -> None:
    muted(muted_channels=["email"])
    accepted = send(app, {"user_id": "ada", "channels": "all"})
    assert {delivery["channel"]: delivery["status"] for delivery in accepted["delivery"]}[
        "email"
    ] == "suppressed"
    assert accepted["warnings"] == []


def test_cancelled_channel_beside_suppressed_ones_is_cancelled(app: App) -> None:
    factories.suppress()
    recipient = {"email": "ada@example.com", "phone": PHONE}
    accepted = send(app, {"channels": ["email", "whatsapp"], "recipient": recipient})
    answer = app.post(f"/notifications/{accepted['id']}/cancel").json()
    assert answer["status"] == "cancelled"


def test_completed_event_says_suppressed_and_a_second_suppression_is_an_event_too(
    app: App,
) -> None:
    factories.suppress()
    accepted = send(app, {"channels": ["email"]})

    def events() -> dict[str, str]:
        document = factories.read(ObjectId(accepted["id"]))
        found = callback_events.events_of(document)
        return {event.type: event.id for event in found} | {
            "status": next(
                event.data["status"]
                for event in found
                if event.type == EventType.NOTIFICATION_COMPLETED
            )
        }

    first = events()
    assert first["status"] == "suppressed"
    lifted()
    assert app.post(f"/notifications/{accepted['id']}/retry").status_code == 202
    claimed = factories.claim(ObjectId(accepted["id"]), at=utc_now())
    ended = NotSent(claimed, DeliveryStatus.SUPPRESSED, FailureCode.SUPPRESSED, "Suppressed.")
    leases.settle_not_sent([ended], now=utc_now())
    again = events()
    assert again["delivery.suppressed"] != first["delivery.suppressed"]


def test_filters_find_it_by_status_and_phase(app: App) -> None:
    factories.suppress()
    suppressed = send(app, {"channels": ["email"]})["id"]
    sent = str(factories.settled(DeliveryStatus.SENT, client_id=app.id)["_id"])
    retrying = str(factories.settled(DeliveryStatus.PENDING, client_id=app.id)["_id"])
    waiting = str(factories.accepted(client_id=app.id)["_id"])

    def listed(**query: Any) -> set[str]:
        return {result["id"] for result in app.get("/notifications", **query).json()["results"]}

    assert listed(status="suppressed") == {suppressed}
    assert listed(status="cancelled") == set()
    assert listed(phase="failed") == {suppressed}
    assert listed(phase="sent") == {sent}
    assert listed(phase="retrying,pending") == {retrying, waiting}
    assert listed(phase="sent", status="failed") == set()
    assert listed(phase="sent", status="sent,failed") == {sent}
    assert app.get("/notifications", phase="SENT").status_code == 422
