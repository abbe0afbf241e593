"""Webhooks of accounts: each has an address and a key of its own."""

import base64
import json
import time
from types import ModuleType
from typing import Any
from urllib.parse import urlencode

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from django.test import Client

from api import webhooks
from domain.channels import Channel
from domain.states import DeliveryStatus
from domain.time import utc_now
from notifications.receipts import processor, webhook_log
from notifications.receipts.webhook_log import UnreadableWebhookError
from notifyproject.db.collections import collection
from providers.registry import get_provider
from tests.support.accounts import declare
from tests.support.factories import notifications as factories
from tests.support.providers.twilio import callback, sign

pytestmark = pytest.mark.usefixtures("db", "broker")

NAMES, SENDERS = ("eu", "us"), ("home", "abroad")
PUBLIC, TOKEN = "https://notify.example.com", "9f2c7be1d04a86c35e7f10b2a8d4936c"
KEYS = {name: ec.generate_private_key(ec.SECP256R1()) for name in NAMES}


def public_key(name: str) -> str:
    der = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    return base64.b64encode(KEYS[name].public_key().public_bytes(*der)).decode()


@pytest.fixture(autouse=True)
def _accounts(settings: Any) -> None:
    """Declare two accounts, of which one sends, and give them addresses as at a start."""
    declared = {}
    for name in NAMES:
        declared |= {
            f"PROVIDER_{name.upper()}_KIND": "sendgrid",
            f"PROVIDER_{name.upper()}_API_KEY": f"SG.key-of-the-{name}",
            f"PROVIDER_{name.upper()}_WEBHOOK_PUBLIC_KEY": public_key(name),
        }
    for name in SENDERS:
        declared |= {
            f"PROVIDER_{name.upper()}_KIND": "twilio",
            f"PROVIDER_{name.upper()}_ACCOUNT_SID": "AC1",
            f"PROVIDER_{name.upper()}_AUTH_TOKEN": TOKEN,
            f"PROVIDER_{name.upper()}_FROM": name,
        }
    settings.PUBLIC_URL = PUBLIC
    declare(settings, **declared, EMAIL_PROVIDER="us", SMS_PROVIDER="home,abroad")
    urls = ModuleType("urls")
    vars(urls)["urlpatterns"] = webhooks.routes()
    settings.ROOT_URLCONF = urls


def call(path: str, document: Any, *, signed_by: str) -> Any:
    """Report that a message was delivered, or an unknown one bounced, as an account does."""
    event = {
        "event": "delivered" if document else "bounce",
        "email": "ada@example.com",
        "timestamp": int(time.time()),
        "sg_event_id": f"event-of-{document and document['_id']}",
        "sg_message_id": "sg-1.recvd-1-0",
        **({"reference": f"{document['_id']}.email.1"} if document else {}),
    }
    raw, timestamp = json.dumps([event]).encode(), str(int(time.time()))
    signature = KEYS[signed_by].sign(timestamp.encode() + raw, ec.ECDSA(hashes.SHA256()))
    headers = {
        "X-Twilio-Email-Event-Webhook-Signature": base64.b64encode(signature).decode(),
        "X-Twilio-Email-Event-Webhook-Timestamp": timestamp,
    }
    return Client().post(path, raw, content_type="application/json", headers=headers)


def status(document: Any) -> str:
    return str(factories.delivery(factories.read(document["_id"]))["status"])


def test_receipt_at_the_address_of_an_account_is_of_that_account() -> None:
    for name in NAMES:
        document = factories.settled(DeliveryStatus.SENT, provider=name)
        answer = call(f"/webhooks/sendgrid/{name}", document, signed_by=name)
        assert (answer.status_code, status(document)) == (200, "delivered")
    assert [entry["provider"] for entry in collection("webhook_log").find()] == [*NAMES]
    events = {str(event["_id"]).partition(":")[0] for event in collection("provider_events").find()}
    assert events == {*NAMES}


def test_callback_of_twilio_is_of_the_account_that_is_called() -> None:
    """Two senders of one account at Twilio have one token: the signed address tells them apart."""
    for name in SENDERS:
        document = factories.settled(DeliveryStatus.SENT, channel=Channel.SMS, provider=name)
        sender: Any = get_provider(name)
        url = f"{sender.callback_url}?ref={document['_id']}.sms.1"
        raw = urlencode(callback()).encode()
        signed = sign(raw, url=url, token=TOKEN)
        content_type = signed.pop("content-type")
        for other in SENDERS:
            answer = Client().post(
                url.removeprefix(PUBLIC).replace(name, other),
                raw,
                content_type=content_type,
                headers=signed,
            )
            assert answer.status_code == (204 if other == name else 403)
        stored = factories.delivery(factories.read(document["_id"]), Channel.SMS)
        assert stored["status"] == "delivered"
    assert [entry["provider"] for entry in collection("webhook_log").find()] == [*SENDERS]


def test_receipt_for_a_message_of_another_account_changes_nothing() -> None:
    """A reference is in the headers of a message. The receipt is logged all the same."""
    document = factories.settled(DeliveryStatus.SENT, provider="us")
    assert call("/webhooks/sendgrid/eu", document, signed_by="eu").status_code == 200
    assert status(document) == "sent"
    assert call("/webhooks/sendgrid/us", document, signed_by="us").status_code == 200
    assert status(document) == "delivered"


def test_signature_of_another_account_is_refused() -> None:
    document = factories.settled(DeliveryStatus.SENT)
    for path, name in (("/sendgrid/eu", "us"), ("/sendgrid/us", "eu"), ("/sendgrid", "eu")):
        assert call(f"/webhooks{path}", document, signed_by=name).status_code == 403, path
    assert status(document) == "sent"


def test_address_without_an_account_is_unknown() -> None:
    document = factories.settled(DeliveryStatus.SENT)
    for path in ("/sendgrid/uk", "/smtp", "/twilio/eu", "/eu", "/sendgrid/sendgrid"):
        assert call(f"/webhooks{path}", document, signed_by="eu").status_code == 404, path


def test_log_of_an_account_that_is_gone_stays(settings: Any) -> None:
    """Another environment has no account of this name: nothing of it may fail."""
    call("/webhooks/sendgrid/eu", None, signed_by="eu")
    settings.PROVIDER_ACCOUNTS = {}
    assert collection("early_receipts").count_documents({"provider": "eu"}) == 1
    assert processor.apply_early_receipts(now=utc_now()) == 0
    entry = collection("webhook_log").find_one({"provider": "eu"})
    with pytest.raises(UnreadableWebhookError):
        webhook_log.replay(entry["_id"], now=utc_now())
