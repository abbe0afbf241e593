"""A document of a newer version is read: each field that this version doesn't know is left out."""

import ast
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import msgspec
import pytest
from bson import ObjectId

from domain.content import Attachment, Content, PushOptions, Recipient, SensitiveContent
from domain.retry import UnknownPolicy
from notifications.broadcasts.requests import request_of
from notifications.catalog import types
from notifications.intake.requests import (
    AttachmentRequest,
    ContentRequest,
    NotificationRecipientRequest,
    NotificationRequest,
    PushRequest,
)
from notifications.receipts import processor
from notifications.store import encrypted_content, reading
from notifyproject.platform import encryption
from providers.contract import AddressEffect, Receipt, ReceiptKind
from tests.support.factories.notifications import NOON
from tests.support.source import SERVICE, files, tree
from tests.support.tables import each_case

FILE = Attachment(url="https://files.example.com/a", filename="a.pdf", content_type="a/pdf")
RECIPIENT = Recipient(email="ada@example.com", device_ids=("d1",), given=("email",))
CONTENT = Content(
    subject="Paid", body="It has arrived.", attachments=(FILE,), push=PushOptions(sound="ping")
)
SECRET = SensitiveContent(
    data={"code": "1234"}, content={"body": "Use 1234", "attachments": [asdict(FILE)]}
)
RECEIPT = Receipt(
    event_id="e1",
    reference=None,
    provider_id=None,
    reason=None,
    address=None,
    kind=ReceiptKind.BOUNCED,
    at=NOON,
    effect=AddressEffect.HARD_BOUNCE,
    other_ids=("o1",),
)
REQUEST = NotificationRequest(
    type="payment_confirmed",
    recipient=NotificationRecipientRequest(email="ada@example.com"),
    content=ContentRequest(
        body="It has arrived.",
        attachments=[AttachmentRequest(url=FILE.url, filename="a.pdf", content_type="a/pdf")],
        push=PushRequest(sound="ping"),
    ),
)
TYPE = {
    "_id": "payment_confirmed",
    "name": "Payment",
    "category": "transactional",
    "priority": "normal",
    "channels": ["email"],
    "max_retries": 3,
    "on_unknown": min(UnknownPolicy),
    "sensitive_variables": [],
    "sms": {"max_units": 1, "allow_unicode": False},
    "actions": [{"id": "pay", "label": "Pay", "style": "default", "link": None}],
    "approved_templates": [
        {"locale": "pt", "name": "paid", "language": "pt_PT", "parameters": ["amount"]}
    ],
}


def _unmasked(stored: Mapping[str, Any]) -> Content:
    return SensitiveContent(data={}, content=stored).unmask(CONTENT)


STORED: Mapping[str, tuple[Callable[[Any], Any], Any]] = {
    "recipient": (reading.recipient_of, {"recipient": asdict(RECIPIENT)}),
    "content": (reading.content_of, {"content": asdict(CONTENT)}),
    "sensitive": (_unmasked, asdict(SECRET)["content"]),
    "type": (types._parse_type, TYPE),
    "receipt": (processor._restore, processor._stored(RECEIPT)),
    "broadcast": (request_of, {"request": msgspec.to_builtins(REQUEST)}),
}
OTHER_SPLATS = {
    ("api/design.py", "BrandChangeView"): "its own fields",
    ("api/design.py", "BrandView"): "its own fields",
    ("api/design.py", "LayoutChangeView"): "its own fields",
    ("api/design.py", "LayoutView"): "its own fields",
    ("api/design.py", "PartialChangeView"): "its own fields",
    ("api/design.py", "PartialView"): "its own fields",
    ("api/design.py", "TranslationChangeView"): "its own fields",
    ("api/design.py", "TranslationView"): "its own fields",
    ("api/recipients/preferences.py", "WindowRequest"): "its own fields",
    ("callbacks/worker.py", "EndpointHealth"): "fields of EndpointHealth alone",
    ("domain/content.py", "Attachment"): "known_fields",
    ("console/types/form.py", "TypeRequest"): "fields of TypeRequest alone",
    ("notifications/catalog/texts.py", "TextRules"): "known_fields",
    ("notifications/intake/content.py", "PushOptions"): "the request",
    ("notifyproject/settings/base.py", "SimpleNamespace"): "the declared variables",
    ("notifyproject/settings/variables.py", "Environment"): "the declared variables",
    ("notifyproject/stack/first_run.py", "Credentials"): "a file of this checkout",
    ("providers/email_spec.py", "WebhookSecrets"): "the declared variables",
}
"""Calls that make a record of a mapping alone, and where that comes from."""


def newer(stored: Any) -> Any:
    """Return a stored value with another field in each object of it but a client's own."""
    if isinstance(stored, dict):
        known = {
            name: document if name == "data" else newer(document)
            for name, document in stored.items()
        }
        return known | {"added_later": {"x": 1}}
    return [newer(document) for document in stored] if isinstance(stored, list | tuple) else stored


@each_case("name", STORED)
def test_fields_of_a_newer_version_are_left_out(name: str) -> None:
    read, stored = STORED[name]
    assert read(newer(stored)) == read(stored)


def test_sensitive_content_with_another_part_is_decrypted() -> None:
    owner = ObjectId()
    parts = msgspec.json.encode((*asdict(SECRET).values(), "added later"))
    encrypted = encryption.encrypt(parts, associated_data=encrypted_content._associated_data(owner))
    found = encrypted_content.decrypt(notification_id=owner, content=CONTENT, encrypted=encrypted)
    assert found == SECRET


def test_broadcast_with_a_wrong_value_is_refused() -> None:
    stored: Any = {"request": msgspec.to_builtins(REQUEST) | {"type": 7}}
    with pytest.raises(msgspec.ValidationError):
        request_of(stored)


def test_no_reader_makes_a_record_of_all_that_is_stored() -> None:
    found = {
        (str(path), call.func.id)
        for path in files(*SERVICE)
        for call in ast.walk(tree(path))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id[0].isupper()
        and not call.args
        and [keyword.arg for keyword in call.keywords] == [None]
    }
    assert found == set(OTHER_SPLATS)
