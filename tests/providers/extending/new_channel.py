"""What every channel has, of the one in docs/guides/extend.md. Run by test_guide.py.

The channel and its provider are on the path before Django starts: tests/support/overlay.py.
"""

import hmac
import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from bson import ObjectId
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from delivery import pipeline, sweeper
from delivery.runtime import SendingRuntime
from domain.channels import Channel
from domain.time import utc_now
from monitoring import alerts, rollup
from notifications.broadcasts import runner
from notifications.content import templates as content_templates
from notifications.receipts import webhook_log
from notifyproject.db.collections import collection
from notifyproject.settings.base import urgent_queue_names
from notifyproject.settings.variables import VARIABLES
from providers import registry
from providers.accounts import account_of
from providers.contract import Provider
from providers.discovery import SPECS
from tests.providers.contract import checks
from tests.providers.contract.cases import Case
from tests.providers.contract.servers import http_servers
from tests.providers.contract.subjects import ASKS_FOR_A_PAUSE, PHONE, Place, Subject, message
from tests.support.broker_messages import queued_messages
from tests.support.clients.api import App
from tests.support.console_urls import page_paths
from tests.support.factories import notifications as factories
from tests.support.fakes import socket_server
from tests.support.openapi import api_document
from tests.support.overlay import FOLDER
from tests.support.providers.fcm import Project
from tests.support.tables import each_case

PIGEON = Channel("pigeon")
TAKEN = socket_server.response(201, b"", "X-Flight: flight-1")
KEY, PUBLIC = "key", "https://notify.example.com"
ADA = {"phone": "+351912345678"}
KEPT_AFTER_ERASURE = {"webhook_log"}
"""What may contain an address for 30 days: docs/guides/privacy.md."""
ORDER = {"channels": ["pigeon"], "data": ["order=A-1"]}
PLAIN = {"type": "marketing", "content": {"subject": "Hello", "body": "Good news."}, "data": {}}


@pytest.fixture(autouse=True)
def loft(db: None, broker: Any, settings: Any, tmp_path: Path) -> Iterator[None]:
    """Configure the provider, and add the channel's part of a type."""
    settings.LOFT_KEY, settings.LOFT_URL = KEY, "http://loft.test"
    settings.PUBLIC_URL = PUBLIC
    (engine,) = settings.TEMPLATES
    settings.TEMPLATES = [{**engine, "DIRS": [*engine["DIRS"], FOLDER / "templates"]}]
    settings.ALLOWED_HOSTS = ["other.example.com", "testserver"]
    folder = tmp_path / "templates" / "notifications"
    for root in (Path(settings.BASE_DIR), FOLDER):
        shutil.copytree(root / "templates" / "notifications", folder, dirs_exist_ok=True)
    settings.BASE_DIR = tmp_path
    content_templates.clear()
    registry.clear()
    yield
    content_templates.clear()
    registry.clear()


@contextmanager
def answered(settings: Any, answer: bytes = TAKEN) -> Iterator[list[bytes]]:
    """Let the provider answer everything with this. Yield its requests."""
    handler = socket_server.KeepAlive(answer)
    with socket_server.serving(handler) as server:
        settings.LOFT_URL = server.url
        registry.clear()
        yield handler.requests


def accepted(app: App, **fields: Any) -> ObjectId:
    answer = app.notify(**{"channels": ["pigeon"], "recipient": ADA, **PLAIN, **fields})
    assert answer.status_code == 202, answer.content
    return ObjectId(answer.json()["id"])


def dispatched(settings: Any, *ids: ObjectId, answer: bytes = TAKEN) -> list[bytes]:
    with answered(settings, answer) as requests:
        pipeline.dispatch(SendingRuntime(), list(ids), channel=PIGEON)
    return requests


def shown(app: App, notification_id: ObjectId) -> dict[str, Any]:
    view: dict[str, Any] = app.get(f"/notifications/{notification_id}").json()
    return view


def delivery(app: App, notification_id: ObjectId) -> dict[str, Any]:
    (found,) = shown(app, notification_id)["delivery"]
    assert isinstance(found, dict)
    return found


def landed(notification_id: ObjectId, *, is_lost: bool = False) -> Any:
    """Post the webhook about the end of a flight, which anybody may address to any host."""
    landing = {
        "id": f"{notification_id}.pigeon.1",
        "to": ADA["phone"],
        "at": utc_now().isoformat(),
        "is_lost": is_lost,
        "note": "Dear Ada",
    }
    return posted(json.dumps(landing), signed_url=f"{PUBLIC}/webhooks/aviary?via=a%20b")


def posted(text: str, *, signed_url: str) -> Any:
    signature = hmac.digest(KEY.encode(), signed_url.encode(), "sha256").hex()
    return Client().post(
        "/webhooks/aviary?via=a%20b",
        text.encode(),
        content_type="application/json",
        headers={"X-Signature": signature, "Host": "other.example.com"},
    )


def test_provider_keeps_the_contract(
    project: Project, google_account_file: Path, settings: Any
) -> None:
    def make(place: Place, account: str) -> Provider:
        settings.LOFT_KEY, settings.LOFT_URL = f"key-of-{account}", place.url
        return SPECS["loft"].build(account_of("loft"))

    subject = Subject(
        provider=type(registry.get_provider("loft")),
        make=make,
        outbound=message("pigeon", PHONE),
        servers=http_servers(
            201,
            b"",
            "X-Flight: flight-1",
            refusals={
                Case.TOO_MANY: socket_server.response(429, b"", ASKS_FOR_A_PAUSE),
                Case.NO_CREDENTIALS: socket_server.response(401),
                Case.BAD_RECIPIENT: socket_server.response(404, f"{PHONE} is none".encode()),
                Case.REFUSED: socket_server.response(400),
            },
        ),
        secrets=lambda _place: ["key-of-first"],
    )
    checks.check_every_case(subject, project)


def test_message_is_sent_and_delivered(app: App, settings: Any) -> None:
    sent = accepted(app)
    (request,) = dispatched(settings, sent)
    assert json.loads(request.partition(b"\r\n\r\n")[2]) == {
        "to": "+351912345678",
        "text": "Good news.",
        "id": f"{sent}.pigeon.1",
    }
    assert delivery(app, sent)["status"] == "sent"
    (attempt,) = app.get(f"/notifications/{sent}/attempts").json()["results"]
    assert (attempt["channel"], attempt["provider"]) == ("pigeon", "aviary")
    assert landed(sent).status_code == 200
    assert delivery(app, sent)["status"] == "delivered"


def test_webhook_is_verified_applied_logged_and_replayed(app: App, settings: Any) -> None:
    sent = accepted(app)
    dispatched(settings, sent)
    refused = posted("{}", signed_url="https://other.example.com/webhooks/aviary?via=a%20b")
    assert (refused.status_code, refused.json()["code"]) == (403, "invalid_signature")
    answer = landed(sent)
    assert (answer.status_code, answer.content) == (200, b"Got it")
    (entry,) = collection("webhook_log").find({})
    assert entry["provider"] == "aviary"
    assert "Ada" not in entry["body"]
    applied = webhook_log.replay(entry["_id"], now=utc_now())
    assert (applied.events, applied.changed) == (1, 0)
    assert Client().get("/webhooks/aviary").status_code == 405
    for name in ("loft", "smtp", "nobody"):
        assert Client().post(f"/webhooks/{name}").status_code == 404


@each_case(
    "status, fate",
    [
        (404, ("failed", "invalid_recipient", 0)),
        (401, ("pending", "channel_unavailable", 1)),
        (429, ("pending", "rate_limited", 1)),
        (503, ("pending", "provider_error", 0)),
        (200, ("unknown", "provider_error", 0)),
    ],
)
def test_rules_of_the_example_decide_the_outcome(
    app: App, settings: Any, status: int, fate: tuple[str, str, int]
) -> None:
    sent = accepted(app)
    (_,) = dispatched(settings, sent, answer=socket_server.response(status))
    found = factories.delivery(factories.read(sent), PIGEON)
    assert (found["status"], found["failure_code"], found["uncounted_attempts"]) == fate


def test_part_of_a_type_is_sent(app: App, settings: Any) -> None:
    sent = accepted(app, type="order_shipped", content=..., data={"order": "A-1"})
    (request,) = dispatched(settings, sent)
    assert "Order A-1 flies." in request.decode()


def test_part_is_stored_with_a_version(app: App) -> None:
    parts = {"default": {"subject": "S", "body": "B", "pigeon": "Coo, {{ order }}."}}
    answer = app.post("/types/order_shipped/templates", {"parts": parts})
    assert answer.status_code == 201, answer.content
    assert answer.json()["parts"]["default"]["pigeon"] == "Coo, {{ order }}."


def test_preview_shows_the_message(app: App) -> None:
    body = {"type": "marketing", "recipient": ADA, "channels": ["pigeon"], "data": {}}
    body["content"] = PLAIN["content"]
    answer = app.post("/notifications/preview", body)
    channels = {channel["channel"]: channel for channel in answer.json()["channels"]}
    assert channels["pigeon"]["text"] == "Good news."
    assert channels["pigeon"]["would_send"]


def test_lost_pigeon_suppresses_the_address(app: App, settings: Any) -> None:
    sent = accepted(app)
    dispatched(settings, sent)
    landed(sent, is_lost=True)
    assert delivery(app, sent)["status"] == "failed"
    (suppression,) = app.get("/suppressions", channel="pigeon").json()["results"]
    assert suppression["address"] == ADA["phone"]
    again = accepted(app)
    assert delivery(app, again)["status"] == "suppressed"
    lifted = app.delete(f"/suppressions/pigeon/{ADA['phone']}")
    assert lifted.status_code == 200
    assert delivery(app, accepted(app))["status"] == "pending"


def test_opt_out_ends_marketing(app: App) -> None:
    app.put("/recipients/ada", {"name": "Ada", **ADA})
    changed = app.put(
        "/recipients/ada/preferences",
        {"preferences": {"marketing": {"muted_channels": ["pigeon"]}}},
    )
    assert changed.status_code == 200, changed.content
    muted = accepted(app, user_id="ada", recipient={})
    assert delivery(app, muted)["failure_code"] == "opted_out"


def test_export_and_erasure_know_the_channel(app: App, settings: Any) -> None:
    app.put("/recipients/ada", {"name": "Ada", **ADA})
    sent = accepted(app, user_id="ada", recipient={})
    dispatched(settings, sent)
    landed(sent, is_lost=True)
    exported = app.get("/recipients/ada/export").json()
    assert [s["channel"] for s in exported["suppressions"]] == ["pigeon"]
    assert exported["notifications"][0]["delivery"][0]["channel"] == "pigeon"
    assert app.delete("/recipients/ada").status_code == 200
    names = set(collection("notifications").database.list_collection_names())
    for name in names - KEPT_AFTER_ERASURE:
        stored = str(list(collection(name).find()))
        assert ADA["phone"] not in stored, name
        assert ADA["phone"].removeprefix("+") not in stored, name


def test_failed_message_is_resent(app: App, console: Client, settings: Any) -> None:
    sent = accepted(app)
    dispatched(settings, sent, answer=socket_server.response(400))
    assert delivery(app, sent)["status"] == "failed"
    answer = app.post(f"/notifications/{sent}/resend", {"channels": ["pigeon"]})
    assert answer.status_code == 202, answer.content
    url = reverse("admin:notifications_notification_resend", args=[sent])
    assert "Pigeon" in console.post(url, {}).content.decode()


def test_step_of_a_plan_flies(app: App) -> None:
    plan = {
        "until": "delivered",
        "steps": [{"channels": ["email"]}, {"channels": ["pigeon"], "after": 3600}],
    }
    both = {"email": "ada@example.com", **ADA}
    sent = accepted(app, channels=..., plan=plan, recipient=both)
    assert [d["channel"] for d in shown(app, sent)["delivery"]] == ["email", "pigeon"]


def test_limit_holds_the_second_message(app: App, settings: Any) -> None:
    app.put("/recipients/ada", {"name": "Ada", **ADA})
    limit = {"channels": ["pigeon"], "categories": ["marketing"], "max": 1, "period_seconds": 3600}
    assert app.put("/limits/hourly", limit).status_code in (200, 201)
    first, second = (accepted(app, user_id="ada", recipient={}) for _ in range(2))
    assert len(dispatched(settings, first, second)) == 1
    reasons = {delivery(app, one)["wait_reason"] for one in (first, second)}
    assert reasons == {None, "over_limit"}


def test_broadcast_reaches_who_has_an_address(app: App) -> None:
    app.put("/recipients/ada", {"name": "Ada", **ADA})
    body = {"audience": {"user_ids": ["ada"]}, "channels": ["pigeon"], **PLAIN}
    answer = app.post("/broadcasts", body)
    assert answer.status_code == 202, answer.content
    runner.run_inline()
    (stored,) = collection("notifications").find({"user_id": "ada"})
    assert [d["channel"] for d in stored["delivery"]] == ["pigeon"]


def test_lost_wakeup_is_found(app: App, broker: Any) -> None:
    sent = accepted(app)
    broker.flushdb()
    report = sweeper.sweep(now=utc_now() + timedelta(seconds=1))
    assert report.woken == 1
    (woken,) = queued_messages(broker, f"pigeon.{shown(app, sent)['priority']}")
    assert woken.ids == [sent]


def test_statistics_have_a_group(app: App, settings: Any) -> None:
    dispatched(settings, accepted(app))
    rollup.run(now=utc_now() + timedelta(minutes=2))
    groups = app.get("/notifications/stats", by="channel").json()["results"]
    assert [group["value"] for group in groups] == ["pigeon"]


def test_alert_is_raised_about_it(app: App, settings: Any) -> None:
    sent = [accepted(app) for _ in range(30)]
    dispatched(settings, *sent, answer=socket_server.response(400))
    now = utc_now() + timedelta(minutes=2)
    rollup.run(now=now)
    alerts.evaluate(now=now)
    incidents = collection("incidents").find()
    assert any("pigeon" in str(incident).lower() for incident in incidents)


def test_workers_take_its_queues(settings: Any) -> None:
    names = {queue.name for queue in settings.CELERY_TASK_QUEUES}
    assert {f"pigeon.{p}" for p in ("critical", "high", "normal", "low")} <= names
    assert "pigeon.critical" in urgent_queue_names()


def test_each_page_of_the_console_opens(app: App, console: Client, settings: Any) -> None:
    sent, failed, waiting = accepted(app), accepted(app), accepted(app)
    dispatched(settings, sent)
    landed(sent, is_lost=True)
    dispatched(settings, failed, answer=socket_server.response(400))
    rollup.run(now=utc_now() + timedelta(minutes=2))
    texts = {path: console.get(path).content.decode() for path in page_paths()}
    for notification_id in (sent, failed, waiting):
        path = reverse("admin:notifications_notification_change", args=[notification_id])
        texts[path] = console.get(path).content.decode()
        assert "Pigeon" in texts[path]
    naming = {path for path, text in texts.items() if "Pigeon" in text}
    for name in (
        "providerstate",
        "heartbeat",
        "suppression",
        "deliveryattempt",
        "failednotification",
    ):
        (path,) = [path for path in texts if path.endswith(f"/{name}/")]
        assert path in naming, path
    assert reverse("admin:index") in naming


def test_console_previews_it_and_sends_a_test(console: Client, settings: Any) -> None:
    url = reverse("admin:notifications_notificationtype_version", args=["order_shipped", 0])
    page = console.get(url).content.decode()
    assert re.search(r"<pre>Order .* flies\.\s*</pre>", page)
    form = reverse("admin:notifications_notificationtype_new_version", args=["order_shipped"])
    assert 'name="pigeon:default"' in console.get(form).content.decode()


def test_api_describes_it() -> None:
    document = api_document()
    schemas = document["components"]["schemas"]
    assert "pigeon" in schemas["Channel"]["enum"]
    assert "pigeon" in schemas["PartsRequest"]["properties"]
    lacking = [
        f"{name}.{field}"
        for name, schema in schemas.items()
        for field, value in schema.get("properties", {}).items()
        if "whatsapp" in str(value.get("enum", "")) and "pigeon" not in str(value)
    ]
    assert lacking == []


def test_variables_are_declared_and_limit_the_rate(settings: Any) -> None:
    assert {"LOFT_KEY", "LOFT_URL"} <= VARIABLES.keys()
    assert settings.PROVIDER_RATES["loft"] == (20, 2)
    assert settings.MAX_IN_FLIGHT["loft"] > 0


def test_commands_take_it(app: App, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("notify", type="order_shipped", phone=ADA["phone"], **ORDER)
    assert collection("notifications").count_documents({"delivery.channel": "pigeon"}) == 1
    call_command("redrive", "--channel", "pigeon")
    call_command("makemigrations", "--check", "--dry-run")
    call_command("check")
