"""One mail to many recipients: few requests, an unsubscribe link each."""

from collections.abc import Callable
from typing import Any

import pytest
import urllib3

from delivery import dispatcher
from domain.content import Content, Recipient
from domain.states import Category, Channel
from notifications import store
from notifyproject.db.collections import collection
from sandbox.server import Sandbox
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON

pytestmark = pytest.mark.usefixtures("app")
Received = Callable[[str], list[dict[str, Any]]]


def campaign(*addresses: str) -> list[Any]:
    """Accept one mail per address. Return the ids."""
    news = [
        factories.new(
            type="marketing",
            category=Category.MARKETING,
            recipient=Recipient(email=address),
            content=Content(subject="Spring", body="It is spring."),
        )
        for address in addresses
    ]
    store.accept(news, now=NOON)
    return [one.id for one in news]


def requests(provider: Sandbox) -> list[dict[str, Any]]:
    url = f"{provider.url}/_sandbox/requests"
    return urllib3.request("GET", url, fields={"limit": "1000"}).json()["results"]


def statuses() -> dict[str, str]:
    return {
        document["recipient"]["email"]: document["delivery"][0]["status"]
        for document in collection("notifications").find()
    }


def test_batch_is_one_request(provider: Sandbox) -> None:
    ids = campaign(*(f"person-{n}@example.com" for n in range(50)))
    report = dispatcher.dispatch(ids, channel=Channel.EMAIL)
    assert report.counts == {"sent": 50}
    assert len(requests(provider)) == 1


def test_bad_address_does_not_fail_the_batch(provider: Sandbox) -> None:
    ids = campaign(*(f"person-{n}@example.com" for n in range(8)), "invalid@example.com")
    report = dispatcher.dispatch(ids, channel=Channel.EMAIL)
    assert report.counts == {"sent": 8, "failed": 1}
    found = statuses()
    assert found.pop("invalid@example.com") == "failed"
    assert set(found.values()) <= {"sent", "delivered"}, "the first reports may be there already"


def test_each_recipient_has_an_unsubscribe_link(provider: Sandbox) -> None:
    ids = campaign("ada@example.com", "grace@example.com")
    dispatcher.dispatch(ids, channel=Channel.EMAIL)
    (request,) = requests(provider)
    links = {one["headers"]["List-Unsubscribe"] for one in request["body"]["personalizations"]}
    assert len(links) == 2
