"""The requests of API clients in the console."""

from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId
from django.test import Client

from access.clients import registry
from domain.time import utc_now
from notifications.documents.records import REQUEST_LOG, LoggedRequestDocument
from tests.support.clients.console import listed

pytestmark = pytest.mark.usefixtures("db", "broker")
LIST = "/admin/notifications/loggedrequest/"


def logged(client_id: ObjectId, **fields: Any) -> ObjectId:
    now = utc_now()
    document: LoggedRequestDocument = {
        "_id": ObjectId(),
        "client_id": client_id,
        "request_id": "checkout-17",
        "method": "POST",
        "path": "/api/v1/notifications",
        "status": 202,
        "duration_ms": 12,
        "body": '{"type": "payment_confirmed", "user_id": "… (3 characters)"}',
        "body_bytes": 61,
        "at": now,
        "purge_at": now + timedelta(days=7),
    }
    document.update(fields)
    REQUEST_LOG().insert_one(document)
    return document["_id"]


@pytest.fixture
def shop() -> ObjectId:
    return registry.create_client(name="shop", scopes=[], now=utc_now())


def test_request_is_found_by_its_id(console: Client, shop: ObjectId) -> None:
    key = logged(shop)
    logged(shop, request_id="checkout-18")
    assert listed(console, f"{LIST}?q=checkout-17") == [key]


def test_list_is_filtered_by_client_and_outcome(console: Client, shop: ObjectId) -> None:
    refused = logged(shop, status=422, code="validation_failed")
    logged(shop)
    logged(registry.create_client(name="blog", scopes=[], now=utc_now()), status=422)
    assert listed(console, f"{LIST}?client={shop}&outcome=refused") == [refused]


def test_page_shows_the_masked_body_and_the_problem(
    console: Client, shop: ObjectId, settings: Any
) -> None:
    settings.DOCS_URL = "https://docs.example.com"
    found = ["/recipient/email invalid_email"]
    key = logged(shop, status=422, code="validation_failed", errors=found)
    page = console.get(f"{LIST}{key}/change/").content.decode()
    assert "payment_confirmed" in page
    assert "https://docs.example.com/problems/validation_failed.html" in page
    assert "/recipient/email invalid_email" in page


def test_client_leads_to_its_requests(console: Client, shop: ObjectId) -> None:
    page = console.get(f"/admin/access/apiclient/{shop}/change/").content.decode()
    assert f"{LIST}?client={shop}" in page
