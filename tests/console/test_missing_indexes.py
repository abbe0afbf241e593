"""A missing index makes a search slow, or leaves out a kind of result, but no page fails."""

from collections.abc import Iterator

import pytest
from django.test import Client

from domain.time import utc_now
from notifyproject.db import index_drift
from notifyproject.db.collections import database
from tests.support.clients.console import register_ada
from tests.support.factories import notifications as factories
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db")

COLLECTIONS = ("django_admin_log", "webhook_log", "recipients", "suppressions")


@pytest.fixture(autouse=True)
def _without_indexes() -> Iterator[None]:
    for name in COLLECTIONS:
        database()[name].drop_indexes()
    yield
    index_drift.create_missing()


@pytest.fixture
def ada() -> None:
    register_ada()


@each_case("query", ["", "?q=ada", "?q=ada@example.com", "?q=%2B351912345678"])
@each_case(
    "page",
    [
        "admin/logentry",
        "notifications/webhooklog",
        "recipients/recipient",
        "recipients/suppression",
    ],
)
def test_lists_do_not_need_their_indexes(ada: None, console: Client, page: str, query: str) -> None:
    assert console.get(f"/admin/{page}/{query}").status_code == 200


def test_palette_finds_the_rest_without_the_index_of_names(console: Client) -> None:
    factories.accepted(user_id="ada", created_at=utc_now())
    register_ada(name="Ada Lovelace")
    for text in ("ada", "Lovelace"):
        assert console.get("/admin/search/", {"s": text}).status_code == 200
    found = console.get("/admin/search/", {"s": "ada"}).content.decode()
    assert "Ada Lovelace" in found
    assert "Notification" in found
