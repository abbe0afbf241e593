"""A secret code appears only in the provider request and in the recipient's inbox."""

import hashlib
import logging
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import bson
import msgspec
import pytest
import redis
from django.contrib import admin
from django.test import Client
from django.urls import reverse

from delivery import sweeper
from domain.states import OPEN
from domain.time import utc_now
from notifications.documents.notification import NotificationDocument
from notifications.intake import idempotency
from notifications.intake.requests import NotificationRequest
from notifications.request_log import RequestLog
from notifications.store import encrypted_content
from notifyproject.db.collections import collection, database
from recipients import service_windows
from tests.support.clients.api import App
from tests.support.clients.console import make_staff, signed_in
from tests.support.clients.inbox import InboxUser
from tests.support.waiting import until


def documents_containing(text: str) -> list[str]:
    return sorted(
        name
        for name in database().list_collection_names()
        for document in database()[name].find()
        if text.encode() in bson.encode(document)
    )


def keys_with(client: redis.Redis, text: str) -> list[bytes]:
    found = []
    for key in client.scan_iter():
        value = b" ".join(_values(client, key))
        if text.encode() in key + value:
            found.append(key)
    return found


def _values(client: Any, key: bytes) -> Iterator[bytes]:
    match client.type(key):
        case b"string":
            yield client.get(key) or b""
        case b"list":
            yield from client.lrange(key, 0, -1)
        case b"set":
            yield from client.smembers(key)
        case b"hash":
            for name, value in client.hgetall(key).items():
                yield name + b" " + value
        case b"zset":
            yield from client.zrange(key, 0, -1)
        case other:
            yield repr((other, client.dump(key))).encode()


def pages(client: Client, notification_ids: list[str]) -> Iterator[tuple[str, str]]:
    """Yield every console list, and the pages of these notifications, with their HTML."""
    urls = [reverse("admin:index")]
    urls += [
        reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        for model in admin.site._registry
    ]
    view = "admin:notifications_notification_change"
    urls += [reverse(view, args=[each]) for each in notification_ids]
    for name, model in (("webhook_log", "webhooklog"), ("request_log", "loggedrequest")):
        view = f"admin:notifications_{model}_change"
        urls += [reverse(view, args=[row["_id"]]) for row in database()[name].find({}, {"_id": 1})]
    for url in urls:
        answer = client.get(url)
        assert answer.status_code == 200, url
        yield url, answer.content.decode()
    for action in ("retry", "resend", "cancel"):
        for each in notification_ids[:2]:
            url = reverse(f"admin:notifications_notification_{action}", args=[each])
            yield url, client.post(url).content.decode()


pytestmark = pytest.mark.usefixtures("worker", "quick_retries", "quick_silence")
Received = Callable[[str], list[dict[str, Any]]]
Script = Callable[..., None]
SECRET = "kn4rienvogel7"
PHONE, TOKEN = "+447700900999", "adas-phone"
OK, REFUSED, SILENT = "ada@example.com", "invalid@example.com", "timeout-lost@example.com"
DIGESTS = ("md5", "sha1", "sha256", "sha512")
CODE = {"code": SECRET, "expires_in": 5, "nested": [{"code": SECRET}], "text": f"<{SECRET}>"}


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Callable[[], str]:
    """Return a function that returns all logs so far, at debug level."""
    caplog.set_level(logging.DEBUG)
    return lambda: " ".join(str(vars(record)) for record in caplog.records)


def code(**fields: Any) -> dict[str, Any]:
    default = {"type": "mfa_code", "recipient": {"email": OK}, "data": CODE}
    return default | fields


def send_all(app: App) -> list[str]:
    """Send the code on every channel and in every form. Return the IDs."""
    assert app.put("/devices", {"user_id": "ada", "device_token": TOKEN, "platform": "android"})
    service_windows.record_inbound([(PHONE, utc_now())], now=utc_now())
    everywhere = ["email", "push", "whatsapp", "in_app"]
    recipient = {"email": OK, "phone": PHONE}
    requests = [
        code(user_id="ada", recipient=recipient, channels=everywhere),
        code(recipient={"email": REFUSED}),
        code(recipient={"email": SILENT}, max_retries=1),
        code(type="transactional", content={"template_id": "mfa_code"}),
        code(
            data={},
            content={
                "subject": f"Use {SECRET}",
                "body": f"It is {SECRET}.",
                "deep_link": f"https://example.com/{SECRET}",
                "payload": {"any": SECRET},
            },
        ),
        code(content={"image_url": f"https://example.com/{SECRET}.png", "payload": {"c": SECRET}}),
    ]
    ids = []
    for number, body in enumerate(requests):
        answer = app.post("/notifications", body, headers={"Idempotency-Key": f"key-{number}"})
        assert answer.status_code == 202, answer.content
        assert SECRET not in answer.content.decode()
        ids.append(answer.json()["id"])
    bulk = [code(recipient={"email": f"ada+{n}@example.com"}) for n in range(3)]
    # The last is refused: it has no address.
    body = {"notifications": [*bulk, code(recipient={})]}
    answer = app.post("/notifications/bulk", body, headers={"Idempotency-Key": "bulk"})
    assert answer.status_code == 200, answer.content
    assert SECRET not in answer.content.decode()
    wrong = app.post("/notifications", code(data={"code": SECRET, "expires_in": {}}, ttl=-1))
    assert wrong.status_code == 422
    assert SECRET not in wrong.content.decode()
    return ids + [item["id"] for item in answer.json()["results"] if item.get("id")]


def later(app: App) -> str:
    """Accept a code for tomorrow. Return the ID."""
    at = (utc_now() + timedelta(days=1)).isoformat()
    return str(app.post("/notifications", code(scheduled_at=at)).json()["id"])


def stored() -> list[NotificationDocument]:
    return list(collection("notifications").find())


def finished() -> bool:
    """Return whether every delivery that is not scheduled is final."""
    sweeper.sweep(now=utc_now())
    due = [document for document in stored() if "scheduled_at" not in document]
    return not any(d["status"] in OPEN for document in due for d in document["delivery"])


def answers(app: App, ids: list[str]) -> Iterator[str]:
    paths = [
        f"/notifications/{notification_id}{part}"
        for notification_id in ids
        for part in ("", "/attempts")
    ]
    paths += ["/notifications", "/notifications/stats", "/recipients/ada/notifications"]
    paths += ["/recipients/ada/export", "/types/mfa_code", "/types/mfa_code/templates"]
    for path in paths:
        answer = app.get(path)
        assert answer.status_code == 200, path
        yield answer.content.decode()


def test_code_is_only_in_the_request_and_the_recipients_inbox(
    app: App,
    received: Received,
    script: Script,
    broker: redis.Redis,
    *,
    logged: Callable[[], str],
    noted: RequestLog,
) -> None:
    script(REFUSED, "invalid")
    ids, waiting = send_all(app), later(app)
    until(finished)
    assert noted.store() > len(ids)

    # Where it is for.
    for address in (OK, REFUSED, SILENT, PHONE, TOKEN):
        (first, *_) = received(address)
        assert SECRET in str(first["body"]), address
    ada = InboxUser(app=app)
    assert SECRET in str(ada.get().json()["results"])

    # Where it is not.
    assert documents_containing(SECRET) == []
    encrypted = {str(document["_id"]) for document in stored() if "encrypted_content" in document}
    assert encrypted == {waiting, ids[0]}, "what is to be sent, and what is in an inbox"
    assert keys_with(broker, SECRET) == []
    metrics = Client().get("/metrics")
    assert metrics.status_code == 200
    assert SECRET not in metrics.content.decode()
    assert not [answer for answer in answers(app, [*ids, waiting]) if SECRET in answer]
    console = signed_in(make_staff("maria", superuser=True))
    assert not [url for url, page in pages(console, [*ids, waiting]) if SECRET in page]

    # Once it has ended it is gone, encrypted or not.
    app.post(f"/notifications/{waiting}/cancel")
    encrypted_content.purge_secrets(now=utc_now() + timedelta(days=1))
    assert not [
        document
        for document in stored()
        if {"encrypted_content", "encrypted_until"} & document.keys()
    ]
    assert SECRET not in str(ada.get().json())
    for notification_id in ids:
        again = app.post(f"/notifications/{notification_id}/resend")
        assert (again.status_code, again.json()["code"]) == (409, "sensitive_data_destroyed")
    assert documents_containing(SECRET) == []
    assert SECRET not in logged()


def test_code_of_six_digits_is_not_found_by_trying_all(app: App, broker: redis.Redis) -> None:
    single, in_bulk = ({"code": code, "expires_in": 5} for code in ("493021", "493022"))
    for path, body in (
        ("/notifications", code(data=single)),
        ("/notifications/bulk", {"notifications": [code(data=in_bulk)]}),
    ):
        answer = app.post(path, body, headers={"Idempotency-Key": path})
        assert answer.status_code in (200, 202), answer.content

    # All but the code is in the stored notifications: whoever has them can make each request.
    guesses: set[str] = set()
    for number in range(493_000, 493_100):
        request = code(data={"code": str(number), "expires_in": 5})
        typed = msgspec.convert(request, NotificationRequest)
        item = msgspec.json.encode(request, order="sorted")
        guesses |= {
            idempotency.fingerprint_of(typed),
            hashlib.sha256(msgspec.json.encode(typed, order="sorted")).hexdigest(),
            hashlib.sha256(b"bulk%d:" % len(item) + item).hexdigest(),
            *(hashlib.new(name, str(number).encode()).hexdigest() for name in DIGESTS),
        }
    documents = b"".join(
        bson.encode(document)
        for name in database().list_collection_names()
        for document in database()[name].find()
    )
    values = b"".join(b"".join(_values(broker, key)) for key in broker.scan_iter())
    assert not [guess for guess in guesses if guess.encode() in documents + values]
