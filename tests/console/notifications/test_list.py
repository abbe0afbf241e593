"""The lists of notifications and of failures: search, filters, and groups."""

from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId
from django.test import Client

from access.clients import registry
from console.notifications import search
from domain.channels import Channel
from domain.content import Recipient
from domain.errors import FailureCode
from domain.states import Category, DeliveryStatus, Priority
from domain.time import utc_now
from monitoring import failure_groups
from notifications.store import leases
from notifications.store.claims import NotSent
from tests.support.clients.console import listed
from tests.support.factories import notifications as factories
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "broker")

LIST = "/admin/notifications/notification/"
FAILED = "/admin/notifications/failednotification/"
S = DeliveryStatus


def test_list_is_newest_first(console: Client) -> None:
    now = utc_now()
    older = factories.accepted(created_at=now - timedelta(minutes=1))
    newer = factories.accepted(created_at=now)
    assert listed(console, LIST) == [newer["_id"], older["_id"]]


def test_filters_select_matching_notifications(console: Client) -> None:
    now = utc_now()
    client_id = registry.create_client(name="Shop", scopes=[], now=now)
    plain = factories.settled(S.SENT, at=now, created_at=now)
    other = factories.accepted(
        created_at=now,
        channels=(Channel.PUSH, Channel.IN_APP),
        type="system_alert",
        category=Category.ALERT,
        priority=Priority.CRITICAL,
        client_id=client_id,
    )
    for query in (
        "status=queued",
        "channel=push",
        "delivery_status=delivered",
        "type=system_alert",
        "category=alert",
        "priority=critical",
        f"client={client_id}",
        "channel=in_app&delivery_status=delivered",
        "delivery_status=pending&channel=push",
    ):
        assert listed(console, f"{LIST}?{query}") == [other["_id"]], query
    assert listed(console, f"{LIST}?delivery_status=sent") == [plain["_id"]]
    # Both must hold for the same channel.
    assert listed(console, f"{LIST}?channel=push&delivery_status=delivered") == []


def test_list_of_all_has_the_failure_filters(console: Client) -> None:
    rejected = failure(FailureCode.REJECTED)
    failure(FailureCode.TIMEOUT, channel=Channel.PUSH)
    for query in ("code=rejected", "code=rejected&channel=email&attempts=1"):
        assert listed(console, f"{LIST}?{query}") == [rejected["_id"]], query
    assert listed(console, f"{LIST}?code=rejected&channel=push") == []
    assert listed(console, f"{LIST}?attempts=2") == []


def test_search_finds_every_identifier_and_address(console: Client) -> None:
    now = utc_now()
    document = factories.settled(
        S.SENT,
        at=now,
        created_at=now,
        user_id="user-9",
        entity_id="order-9",
        external_id="ext-9",
        idempotency_key="key-9",
        recipient=Recipient(email="Nine@example.com", phone="+351912345679"),
    )
    factories.accepted(created_at=now)
    identifier = document["_id"]
    for text in (
        str(identifier),
        f"{identifier}.email.1",
        "user-9",
        "order-9",
        "ext-9",
        "key-9",
        "sg-1",
        "Nine@example.com",
        "Nine@EXAMPLE.com",
        "%2B351912345679",
        "%2B351 912 345 679",
        "  user-9  ",
    ):
        assert listed(console, f"{LIST}?q={text}") == [identifier], text
    for text in ("user-", "nine", "order", str(ObjectId()), "%2B351", "$ne", "{}"):
        assert listed(console, f"{LIST}?q={text}") == [], text


def test_user_id_like_an_object_id_is_found(console: Client) -> None:
    user_id = str(ObjectId())
    mine = factories.accepted(created_at=utc_now(), user_id=user_id)
    assert listed(console, f"{LIST}?q={user_id}") == [mine["_id"]]


def test_search_lists_only_the_newest_matches(
    console: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "MAX_RESULTS", 2)
    monkeypatch.setattr(search.find_ids, "__kwdefaults__", {"cap": 2})
    now = utc_now()
    ids = [factories.accepted(created_at=now + timedelta(seconds=n))["_id"] for n in range(3)]
    response = console.get(f"{LIST}?q=ada")
    assert [row.pk for row in response.context["cl"].result_list] == sorted(ids[1:])[::-1]
    assert "Showing the newest 2 matches." in response.content.decode()


@each_case("url", [LIST, FAILED, "/admin/notifications/deliveryattempt/"])
def test_addresses_are_masked_for_support(console: Client, support: Client, url: str) -> None:
    now = utc_now()
    factories.settled(S.FAILED, at=now, created_at=now)
    assert "ada@example.com" not in support.get(url).content.decode()
    if "attempt" not in url:
        assert "a***@example.com" in support.get(url).content.decode()
        assert "ada@example.com" in console.get(url).content.decode()


def test_failed_list_has_only_failures_newest_first(console: Client) -> None:
    now = utc_now()
    factories.settled(S.SENT, at=now, created_at=now)
    earlier = now - timedelta(hours=1)
    first = factories.settled(S.FAILED, at=earlier, created_at=earlier)
    second = factories.settled(S.FAILED, at=now, created_at=earlier)
    assert listed(console, FAILED) == [second["_id"], first["_id"]]
    assert f"{LIST}{first['_id']}/change/" in console.get(FAILED).content.decode()


def failure(code: FailureCode, *, channel: Channel = Channel.EMAIL, **fields: Any) -> Any:
    now = utc_now()
    begun = factories.started(at=now, channel=channel, created_at=now, **fields)
    outcome = factories.settlement(begun, S.FAILED, at=now, code=code, reason="It said no.")
    leases.settle([outcome], now=now)
    return factories.read(begun.notification_id)


def test_failures_are_grouped_by_cause(console: Client) -> None:
    rejected = [failure(FailureCode.REJECTED) for _ in range(2)]
    timeout = failure(FailureCode.TIMEOUT, channel=Channel.PUSH, type="system_alert")
    rows = console.get(FAILED).context["cl"].groups
    found = [(r.channel, r.code, r.group.count) for r in rows]
    assert found == [("Email", "Rejected", 2), ("Push", "Timeout", 1)]
    assert "Message rejected by the provider." in console.get(FAILED).content.decode()
    # A group filters the list, and removes its filter again.
    assert set(listed(console, FAILED + rows[0].url)) == {d["_id"] for d in rejected}
    chosen = console.get(FAILED + rows[1].url)
    assert [r.pk for r in chosen.context["cl"].result_list] == [timeout["_id"]]
    assert "channel" not in next(r.url for r in chosen.context["cl"].groups if r.is_chosen)
    # The groups are of the same type as the list.
    narrowed = console.get(f"{FAILED}?type=system_alert").context["cl"].groups
    assert [r.code for r in narrowed] == ["Timeout"]


def test_failures_are_grouped_by_provider(console: Client) -> None:
    now = utc_now()
    for provider in ("sendgrid", "smtp", "smtp"):
        begun = factories.start(
            factories.claimed(at=now, created_at=now), at=now, provider=provider
        )
        leases.settle([factories.settlement(begun, S.FAILED, at=now, provider=provider)], now=now)
    rows = console.get(FAILED).context["cl"].groups
    assert [(r.provider, r.count) for r in rows] == [("Mail server", "2"), ("SendGrid", "1")]
    assert len(listed(console, FAILED + rows[0].url)) == 2
    assert len(listed(console, FAILED + rows[1].url)) == 1


def test_group_has_counts_per_interval_and_a_trend(console: Client) -> None:
    now = utc_now()
    for hours in (30, 2, 1):
        at = now - timedelta(hours=hours)
        factories.settled(S.FAILED, at=at, created_at=at)
    failure(FailureCode.REJECTED)
    shown = console.get(FAILED)
    assert ">Trend<" in shown.content.decode()
    old, new = shown.context["cl"].groups
    assert (old.count, old.trend) == ("2", "↑ from 1")
    assert (new.count, new.trend) == ("1", "new")
    assert [count for count in old.group.trend if count] == [1, 1]
    assert sum(1 for _, _, height in old.bars if height) == 2


def test_capped_groups_say_so(console: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failure_groups, "CAP", 2)
    for _ in range(3):
        failure(FailureCode.REJECTED)
    page = console.get(FAILED)
    (row,) = page.context["cl"].groups
    assert (row.count, row.trend) == ("2+", "")
    assert "counted since" in page.content.decode()


def test_failures_are_filtered_by_other_fields_than_the_cause(console: Client) -> None:
    now = utc_now()
    alert = failure(FailureCode.REJECTED, category=Category.ALERT, priority=Priority.CRITICAL)
    factories.settled(S.FAILED, at=now, created_at=now)
    unsent = factories.claimed(at=now, created_at=now, user_id="bob")
    without_address = NotSent(
        claimed=unsent, status=S.FAILED, code=FailureCode.NO_ADDRESS, reason="There is none."
    )
    leases.settle_not_sent([without_address], now=now)
    for query in ("category=alert", "priority=critical", "code=rejected&attempts=1"):
        changelist = console.get(f"{FAILED}?{query}").context["cl"]
        assert [row.pk for row in changelist.result_list] == [alert["_id"]], query
        # The groups are of the same deliveries.
        assert {row.code for row in changelist.groups} == {"Rejected"}, query
    for query in ("attempts=0", "provider=-"):
        assert listed(console, f"{FAILED}?{query}") == [unsent.notification_id], query


def test_failures_are_grouped_over_the_selected_time(console: Client) -> None:
    now = utc_now()
    for days in (0, 3):
        at = now - timedelta(days=days)
        factories.settled(S.FAILED, at=at, created_at=at)
    assert console.get(FAILED).context["cl"].groups[0].group.count == 1
    week = console.get(f"{FAILED}?failed_within=7d").context["cl"]
    assert week.groups[0].group.count == 2
    assert week.period_label == "in the selected time range"
