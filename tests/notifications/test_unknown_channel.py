"""What another version stored of a channel and a provider that this one doesn't have.

During an upgrade, and after a return to the older version, every reader takes them: it shows their
plain names, leaves what is to be sent to the other version, and goes on with everything else.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId
from django.test import Client

from delivery import digests, pipeline, sweeper, worker
from delivery.runtime import SendingRuntime
from domain.channels import ADDRESS_CHANNELS, Channel
from domain.states import DeliveryStatus
from domain.time import utc_now
from monitoring import alerts, rollup
from notifications import callback_events
from notifications.broadcasts import runner
from notifications.content import templates as content_templates
from notifications.receipts import processor
from notifyproject.db.collections import collection
from notifyproject.platform import cache
from privacy import content_removal
from providers.contract import Receipt, ReceiptKind
from tasks import tasks
from tests.support.clients.api import App
from tests.support.console_urls import page_paths
from tests.support.factories import notifications as factories
from tests.support.factories.one_of_each import store_one_of_each
from tests.support.fakes.callback_receiver import called_back
from tests.support.tables import each_case

PIGEON = Channel("pigeon")
PHONE = "+351912345678"
NEW_NAMES = {"whatsapp": "pigeon", "sendgrid": "loft", "smtp": "dovecote", "slack_bot": "crow"}
"""A channel, providers, and a kind of room, and their names in the other version."""
UNTOUCHED = ("notification_types", "django_", "auth_", "staff_users", "alert_rules")
S = DeliveryStatus


def renamed(value: Any) -> Any:
    """Return a stored value with the other version's names, also within texts and keys."""
    if isinstance(value, dict):
        return {renamed(key): renamed(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [renamed(inner) for inner in value]
    if isinstance(value, str):
        for own, new in NEW_NAMES.items():
            value = value.replace(own, new)
    return value


def rename_everything() -> None:
    """Let the other version have stored what is stored."""
    database = collection("notifications").database
    for name in database.list_collection_names():
        if not name.startswith(UNTOUCHED):
            stored = database[name]
            for document in list(stored.find()):
                if (other := renamed(document)) != document:
                    stored.delete_one({"_id": document["_id"]})
                    stored.insert_one(other)
    cache.clear_all()
    content_templates.clear()


@pytest.fixture
def now() -> datetime:
    return utc_now()


@pytest.fixture
def mixed(app: App, now: datetime) -> ObjectId:
    """Store documents of the other version. Return the ID of a message on its channel and email."""
    store_one_of_each(now=now)
    channel = Channel("whatsapp")
    for status in (S.SENT, S.FAILED, S.UNKNOWN, S.PENDING):
        factories.settled(status, channel=channel, at=now, created_at=now, client_id=app.id)
    earlier = now - timedelta(minutes=5)
    factories.started(at=earlier, channel=channel, created_at=earlier)
    app.put("/recipients/ada", {"name": "Ada", "email": "ada@example.com", "phone": PHONE})
    muted = {"preferences": {"marketing": {"muted_channels": ["whatsapp"]}}}
    assert app.put("/recipients/ada/preferences", muted).status_code == 200
    app.put(f"/suppressions/whatsapp/{PHONE}", {})
    limit = {"channels": ["whatsapp"], "categories": ["marketing"], "max": 3}
    assert app.put("/limits/of_pigeons", {**limit, "period_seconds": 3600}).status_code in (
        200,
        201,
    )
    parts = {"default": {"subject": "S", "body": "B", "whatsapp": "W"}}
    version = app.post("/types/payment_confirmed/templates", {"parts": parts})
    assert version.status_code == 201
    app.post(f"/types/payment_confirmed/templates/{version.json()['number']}/publish", {})
    plan = {
        "until": "read",
        "steps": [{"channels": ["whatsapp"]}, {"channels": ["email"], "after": 3600}],
    }
    both = {"email": "ada@example.com", "phone": "+351912345679"}
    app.notify(channels=..., plan=plan, recipient=both)
    document = factories.accepted(
        channels=(Channel.EMAIL, channel), created_at=now, client_id=app.id
    )
    called_back("http://127.0.0.1/hooks", client_id=app.id, now=now)
    changed = {"callback_revision": 1, "callback_due_at": now}
    collection("notifications").update_many({"client_id": app.id}, {"$set": changed})
    rollup.run(now=now + timedelta(minutes=2))
    rename_everything()
    collection("notification_types").update_one(
        {"_id": "marketing"},
        {"$set": {"channels": ["email", "pigeon"], "fallback_channel": "pigeon"}},
    )
    cache.clear_all()
    return document["_id"]


def delivered(sent: ObjectId) -> Receipt:
    return Receipt(
        reference=f"{sent}.pigeon.1",
        provider_id=None,
        kind=ReceiptKind.DELIVERED,
        at=utc_now(),
        reason=None,
        event_id="flight-1",
        address=PHONE,
    )


def readers(
    app: App, console: Client, sent: ObjectId, now: datetime
) -> dict[str, Callable[[], Any]]:
    later = now + timedelta(minutes=3)
    runtime = SendingRuntime()

    def get(path: str, **query: Any) -> Callable[[], Any]:
        def read() -> None:
            assert app.get(path, **query).status_code == 200, path

        return read

    def opened(path: str) -> Callable[[], Any]:
        def read() -> None:
            assert console.get(path).status_code in (200, 302, 403, 404, 405), path

        return read

    def post(path: str, body: Any, *statuses: int) -> Callable[[], Any]:
        def write() -> None:
            answer = app.post(path, body)
            assert answer.status_code in statuses, answer.content

        return write

    one = f"/notifications/{sent}"
    return {
        "sweep": lambda: sweeper.sweep(now=later),
        "worker without a broker": lambda: worker.run_inline(runtime),
        "wake-up": lambda: tasks.handle_wakeup([str(sent)], "pigeon", "normal"),
        "pull": lambda: tasks.pull(str(app.id), "pigeon", "normal", None),
        "digests": digests.close_due,
        "broadcasts": runner.run_inline,
        "roll-up": lambda: rollup.run(now=later),
        "alerts": lambda: alerts.evaluate(now=later),
        "callback events": lambda: callback_events.publish_events(now=later),
        "content removal": lambda: content_removal.remove_expired_content(
            now=now + timedelta(days=400)
        ),
        "receipt": lambda: processor.apply_receipts([delivered(sent)], provider="loft", now=later),
        "email of the same message": lambda: pipeline.dispatch(
            runtime, [sent], channel=Channel.EMAIL
        ),
        **{
            f"GET {path}": get(path)
            for path in (
                one,
                f"{one}/attempts",
                "/notifications",
                "/suppressions",
                "/limits",
                "/rooms",
                "/types",
                "/types/marketing",
                "/types/payment_confirmed/templates",
                "/recipients/ada",
                "/recipients/ada/preferences",
                "/recipients/ada/notifications",
                "/recipients/ada/limits",
                "/recipients/ada/export",
                "/digests",
                "/broadcasts",
            )
        },
        **{
            f"stats by {by}": get("/notifications/stats", by=by)
            for by in ("status", "type", "channel", "provider", "platform")
        },
        "metrics": lambda: console.get("/metrics"),
        "a message to the type": post(
            "/notifications",
            {
                "type": "marketing",
                "user_id": "ada",
                "content": {"subject": "Hello", "body": "Good news."},
            },
            202,
        ),
        "preview": post(
            "/notifications/preview",
            {"type": "marketing", "user_id": "ada", "content": {"subject": "Hello", "body": "B"}},
            200,
        ),
        **{f"console {path}": opened(path) for path in page_paths()},
        "console of the message": opened(f"/admin/notifications/notification/{sent}/change/"),
        "resend": post(f"{one}/resend", {}, 202, 409),
        "retry": post(f"{one}/retry", {}, 200, 202, 409),
        "cancel": post(f"{one}/cancel", {}, 200, 202, 409),
        "erasure": lambda: app.delete("/recipients/ada"),
    }


@pytest.mark.usefixtures("broker")
def test_every_reader_takes_an_unknown_channel(
    app: App, console: Client, mixed: ObjectId, now: datetime
) -> None:
    problems = {}
    for name, read in readers(app, console, mixed, now).items():
        try:
            read()
        except Exception as problem:
            problems[name] = repr(problem)[:600]
    assert problems == {}
    assert "pigeon" in str(list(collection("callback_messages").find()))


@pytest.mark.usefixtures("broker")
def test_delivery_on_an_unknown_channel_is_held_and_the_others_are_sent(
    app: App, console: Client, mixed: ObjectId, now: datetime
) -> None:
    pipeline.dispatch(SendingRuntime(), [mixed], channel=PIGEON)
    shown = {d["channel"]: d for d in app.get(f"/notifications/{mixed}").json()["delivery"]}
    assert shown["pigeon"]["status"] == "pending"
    assert shown["pigeon"]["wait_reason"] == "unknown_channel"
    page = console.get(f"/admin/notifications/notification/{mixed}/change/").content.decode()
    assert "Held: unknown channel" in page
    (stored,) = [d for d in factories.read(mixed)["delivery"] if d["channel"] == "pigeon"]
    assert (stored["claim_count"], stored["attempt_count"]) == (0, 0)


def test_request_names_a_known_channel(app: App) -> None:
    answer = app.notify(channels=["pigeon"])
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (422, "unknown_channel")
    assert app.get("/suppressions", channel="pigeon").status_code == 422
    assert app.put("/suppressions/pigeon/+351912345678", {}).status_code == 422


@each_case("name", ["", "Pigeon", "a b", "x" * 41, "päckchen", None, 1])
def test_no_other_value_is_a_channel(name: Any) -> None:
    with pytest.raises(ValueError, match="is not a valid Channel"):
        Channel(name)


def test_unknown_channel_is_in_no_list() -> None:
    assert Channel("pigeon") == PIGEON
    assert not PIGEON.is_known
    assert PIGEON not in list(Channel)
    assert PIGEON not in ADDRESS_CHANNELS
    assert PIGEON.spec.label == "pigeon"
