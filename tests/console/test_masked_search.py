"""Search by address in every search box, for staff who see masked addresses."""

import json
from datetime import timedelta
from html import unescape
from itertools import product
from urllib.parse import urlencode

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from console.widgets.search import REFUSAL
from domain.states import DeliveryStatus
from domain.time import utc_now
from notifications.receipts import webhook_log
from notifyproject.db.collections import collection
from providers.sendgrid import webhooks
from tests.support.clients.console import listed, make_staff, register_ada, signed_in
from tests.support.factories import notifications as factories
from tests.support.samples import sampled
from tests.support.tables import each_case

ADDRESSES = ("ada@example.com", "Ada@Example.com", "+351912345678", "+351 912 345 678")
UNKNOWN = "nobody@example.com"
BY_ADDRESS = {
    "notification",
    "failednotification",
    "waitingnotification",
    "recipient",
    "suppression",
    "webhooklog",
}
"""The models whose lists are searched by address."""
PALETTE = "/admin/search/"


@pytest.fixture(autouse=True)
def _stored(db: None, broker: None) -> None:
    now = utc_now()
    register_ada()
    factories.suppress(at=now)
    factories.accepted(created_at=now, scheduled_at=now + timedelta(days=1), user_id="ada")
    factories.settled(DeliveryStatus.FAILED, at=now, created_at=now)
    event = {
        "email": "ada@example.com",
        "event": "bounce",
        "sg_message_id": "m-1",
        "sg_event_id": "e-1",
        "timestamp": 1,
    }
    body = json.dumps([event])
    receipts = webhooks.parse_webhook(body.encode()).receipts
    webhook_log.process_webhook(receipts, provider="sendgrid", body=body, now=now)
    call_command("create_roles", verbosity=0)


def member(role: str) -> Client:
    user = make_staff(f"a-{role}")
    user.groups.add(Group.objects.get(name=role))
    return signed_in(user)


def lists(client: Client) -> dict[str, str]:
    """Return the URL of each list with a search that the client may open, by its model."""
    urls = {
        model._meta.model_name: reverse(
            f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist"
        )
        for model, model_admin in admin.site._registry.items()
        if model_admin.search_fields
    }
    return {name: url for name, url in urls.items() if client.get(url).status_code == 200}


def some(urls: dict[str, str]) -> dict[str, str]:
    """Return the lists that are searched by address, and a sample of the others."""
    others = sampled(sorted(urls.keys() - BY_ADDRESS), each=4)
    return {name: url for name, url in urls.items() if name in BY_ADDRESS or name in others}


def searched(url: str, text: str) -> str:
    return f"{url}?{urlencode({'q': text})}"


@each_case("role", sampled(["admin", "operator", "support"], each=3))
def test_roles_that_handle_addresses_find_them(role: str) -> None:
    client = member(role)
    urls = lists(client)
    found = {
        name
        for name, url in some(urls).items()
        if any(listed(client, searched(url, address)) for address in ADDRESSES)
    }
    assert found == BY_ADDRESS & urls.keys()
    assert REFUSAL not in text_of(client, f"{PALETTE}?{urlencode({'s': ADDRESSES[0]})}")


def test_viewer_confirms_no_address_in_any_list() -> None:
    viewer = member("viewer")
    urls = lists(viewer)
    assert urls.keys() >= BY_ADDRESS
    refused = set()
    for name, url in some(urls).items():
        # An unknown address is refused as a known one is.
        for address in (
            *(ADDRESSES if name in BY_ADDRESS else ADDRESSES[:1]),
            "nobody@example.com",
        ):
            answer = viewer.get(searched(url, address))
            assert list(answer.context["cl"].result_list) == [], name
            if REFUSAL in unescape(answer.content.decode()):
                refused.add((name, address))
        assert REFUSAL not in text_of(viewer, searched(url, "ada")), name
    assert refused == set(product(BY_ADDRESS, (*ADDRESSES, UNKNOWN)))


def test_viewer_confirms_no_address_in_the_palette() -> None:
    viewer = member("viewer")
    for address in (*ADDRESSES, UNKNOWN):
        shown = text_of(viewer, f"{PALETTE}?{urlencode({'s': address})}")
        assert "No results" in shown
        assert REFUSAL in shown
    assert "/admin/recipients/recipient/ada/change/" in text_of(viewer, f"{PALETTE}?s=ada")


def test_viewer_still_finds_by_id() -> None:
    viewer = member("viewer")
    document = collection("notifications").find_one({"user_id": "ada"})
    url = lists(viewer)["notification"]
    assert document is not None
    assert document["_id"] in listed(viewer, searched(url, "ada"))


def text_of(client: Client, url: str) -> str:
    return unescape(client.get(url).content.decode())
