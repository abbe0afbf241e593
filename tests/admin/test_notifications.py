"""The lists of notifications and the page about one: what is found and what is shown."""

import re
from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId
from django.test import Client

from access import keys
from notifications import store
from notifications.admin import searching
from notifications.errors import FailureCode
from notifications.states import Category, Channel, DeliveryStatus, Priority
from notifications.store import Content, Recipient
from notifications.timing import utc_now
from notifications.types import MASK
from notifyproject.db.collections import collection
from tests import factories

from .conftest import make_staff, signed_in

pytestmark = pytest.mark.usefixtures("db", "broker")

LIST = "/admin/notifications/notification/"
FAILED = "/admin/notifications/failednotification/"
S = DeliveryStatus


def listed(client: Client, url: str) -> list[Any]:
    """Return the ids a list shows, in its order."""
    return [row.pk for row in client.get(url).context["cl"].result_list]


def page(client: Client, document: Any) -> str:
    """Return the page about a notification."""
    response = client.get(f"{LIST}{document['_id']}/change/")
    assert response.status_code == 200
    return response.content.decode()


def test_the_newest_come_first(console: Client) -> None:
    now = utc_now()
    older = factories.accepted(created_at=now - timedelta(minutes=1))
    newer = factories.accepted(created_at=now)
    assert listed(console, LIST) == [newer["_id"], older["_id"]]


def test_each_filter_narrows(console: Client) -> None:
    now = utc_now()
    client_id = keys.create_client(name="Shop", scopes=[], now=now)
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
        *("status=queued", "channel=push", "delivery_status=delivered"),
        *("type=system_alert", "category=alert", "priority=critical", f"client={client_id}"),
        *("channel=in_app&delivery_status=delivered", "delivery_status=pending&channel=push"),
    ):
        assert listed(console, f"{LIST}?{query}") == [other["_id"]], query
    assert listed(console, f"{LIST}?delivery_status=sent") == [plain["_id"]]
    # Both must hold for the same channel.
    assert listed(console, f"{LIST}?channel=push&delivery_status=delivered") == []


def test_everything_a_person_may_hold_finds_it(console: Client) -> None:
    now = utc_now()
    document = factories.settled(
        *(S.SENT,),
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
        *(str(identifier), f"{identifier}.email.1", "user-9", "order-9", "ext-9", "key-9"),
        *("sg-1", "Nine@example.com", "Nine@EXAMPLE.com", "%2B351912345679"),
        *("%2B351 912 345 679", "  user-9  "),
    ):
        assert listed(console, f"{LIST}?q={text}") == [identifier], text
    for text in ("user-", "nine", "order", str(ObjectId()), "%2B351", "$ne", "{}"):
        assert listed(console, f"{LIST}?q={text}") == [], text


def test_a_user_id_may_look_like_an_id(console: Client) -> None:
    now = utc_now()
    user_id = str(ObjectId())
    mine = factories.accepted(created_at=now, user_id=user_id)
    assert listed(console, f"{LIST}?q={user_id}") == [mine["_id"]]


def test_a_search_lists_the_newest_matches_only(
    console: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "CAP", 2)
    monkeypatch.setattr(searching.find_ids, "__kwdefaults__", {"cap": 2})
    now = utc_now()
    ids = [factories.accepted(created_at=now + timedelta(seconds=n))["_id"] for n in range(3)]
    response = console.get(f"{LIST}?q=ada")
    assert [row.pk for row in response.context["cl"].result_list] == sorted(ids[1:])[::-1]
    assert "Only the newest 2 matches are listed." in response.content.decode()


@pytest.mark.parametrize("url", [LIST, FAILED, "/admin/notifications/deliveryattempt/"])
def test_support_sees_no_whole_address(console: Client, support: Client, url: str) -> None:
    now = utc_now()
    factories.settled(S.FAILED, at=now, created_at=now)
    assert "ada@example.com" not in support.get(url).content.decode()
    if "attempt" not in url:
        assert "a***@example.com" in support.get(url).content.decode()
        assert "ada@example.com" in console.get(url).content.decode()


def test_failures_come_newest_first_and_nothing_else(console: Client) -> None:
    now = utc_now()
    factories.settled(S.SENT, at=now, created_at=now)
    earlier = now - timedelta(hours=1)
    first = factories.settled(S.FAILED, at=earlier, created_at=earlier)
    second = factories.settled(S.FAILED, at=now, created_at=earlier)
    assert listed(console, FAILED) == [second["_id"], first["_id"]]
    assert f"{LIST}{first['_id']}/change/" in console.get(FAILED).content.decode()


def failure(code: FailureCode, *, channel: Channel = Channel.EMAIL, **fields: Any) -> Any:
    """Return a notification that failed now."""
    now = utc_now()
    one = factories.started(at=now, channel=channel, created_at=now, **fields)
    outcome = factories.settlement(one, S.FAILED, at=now, code=code, reason="It said no.")
    store.settle([outcome], now=now)
    return factories.read(one.notification_id)


def test_failures_are_grouped_by_cause(console: Client) -> None:
    rejected = [failure(FailureCode.REJECTED) for _ in range(2)]
    timeout = failure(FailureCode.TIMEOUT, channel=Channel.PUSH, type="system_alert")
    rows = console.get(FAILED).context["cl"].groups
    assert [(r.channel, r.code, r.group.count) for r in rows] == [
        ("Email", "Rejected", 2),
        ("Push", "Timeout", 1),
    ]
    text = console.get(FAILED).content.decode()
    assert "The provider refuses this message." in text
    # A group narrows the list, and widens it again.
    assert set(listed(console, FAILED + rows[0].url)) == {d["_id"] for d in rejected}
    chosen = console.get(FAILED + rows[1].url)
    assert [r.pk for r in chosen.context["cl"].result_list] == [timeout["_id"]]
    assert "channel" not in next(r.url for r in chosen.context["cl"].groups if r.is_chosen)
    # The groups are of the same type as the list.
    narrowed = console.get(f"{FAILED}?type=system_alert").context["cl"].groups
    assert [r.code for r in narrowed] == ["Timeout"]


def test_failures_are_grouped_over_the_chosen_time(console: Client) -> None:
    now = utc_now()
    for days in (0, 3):
        at = now - timedelta(days=days)
        factories.settled(S.FAILED, at=at, created_at=at)
    assert console.get(FAILED).context["cl"].groups[0].group.count == 1
    week = console.get(f"{FAILED}?failed_within=7d").context["cl"]
    assert week.groups[0].group.count == 2
    assert week.span_words == "in the chosen time"


def test_the_page_says_what_happened_and_what_comes_next(console: Client) -> None:
    now = utc_now()
    document = factories.settled(S.FAILED, at=now, created_at=now, entity_id="order-7")
    shown = page(console, document)
    for words in (
        "Email failed once: the provider had a problem of its own. Nothing more will be tried.",
        "The provider had a problem of its own. (503)",
        "Retry it when the provider is well again.",
        "Email, attempt 1",
        "took 12 ms",
        "by SendGrid",
        "&quot;status&quot;: 503",
        "Payment confirmed to ada",
        "order-7",
        "1 of 4",
    ):
        assert words in shown, words


def test_the_page_shows_the_email_in_a_frame_that_runs_nothing(console: Client) -> None:
    evil = Content(subject="Hi", body='<script>alert(1)</script> & "quotes"')
    shown = page(console, factories.accepted(created_at=utc_now(), content=evil))
    frame = re.search(r'<iframe[^>]*sandbox=""[^>]*srcdoc="([^"]*)"', shown)
    assert frame is not None
    assert "Content-Security-Policy" in frame[1]
    assert "default-src &#x27;none&#x27;" in frame[1]
    assert "<script>alert" not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown


def test_the_page_shows_no_frame_without_email(console: Client) -> None:
    document = factories.accepted(created_at=utc_now(), channels=(Channel.IN_APP,))
    shown = page(console, document)
    assert "<iframe" not in shown
    assert "Your payment has arrived." in shown


def test_secrets_are_shown_to_nobody(console: Client) -> None:
    document = factories.accepted(
        created_at=utc_now(),
        type="mfa_code",
        data={"code": "483920", "expires_in": 5},
        content=Content(
            subject="Your code", body=f"Use {MASK}", template_id="mfa_code", is_masked=True
        ),
    )
    shown = page(console, document)
    assert "483920" not in shown
    assert MASK in shown
    assert "Secrets are shown as dots." in shown


def test_data_of_a_type_that_is_gone_is_all_secret(console: Client) -> None:
    document = factories.accepted(created_at=utc_now(), type="gone", data={"code": "483920"})
    assert "483920" not in page(console, document)


def test_what_cannot_be_rendered_is_shown_as_it_was_stored(console: Client) -> None:
    document = factories.accepted(
        created_at=utc_now(),
        type="mfa_code",
        content=Content(
            subject="Your code", body=f"Use {MASK}", template_id="mfa_code", is_masked=True
        ),
    )
    shown = page(console, document)
    assert "The template needs the variable" in shown
    assert f"Use {MASK}" in shown


def test_support_sees_masked_addresses_on_the_page(console: Client, support: Client) -> None:
    now = utc_now()
    one = factories.started(
        at=now, created_at=now, data={"to": "ada@example.com", "count": 3, "list": ["b@c.example"]}
    )
    answer = store.ProviderAnswer(
        provider="sendgrid", response={"status": 400, "excerpt": "no such user ada@example.com"}
    )
    outcome = factories.settlement(
        *(one, S.FAILED), at=now, answer=answer, reason="ada@example.com is wrong"
    )
    store.settle([outcome], now=now)
    document = factories.read(one.notification_id)
    masked, whole = page(support, document), page(console, document)
    assert "ada@example.com" not in masked
    assert "b@c.example" not in masked
    assert "+351912345678" not in masked
    assert "a***@example.com" in masked
    assert "+351******678" in masked
    assert "ada@example.com" in whole
    assert "+351912345678" in whole


def test_support_is_offered_nothing_it_may_not_do(support: Client, console: Client) -> None:
    now = utc_now()
    document = factories.settled(S.FAILED, at=now, created_at=now)
    assert "Retry failed channels" in page(console, document)
    assert "Retry failed channels" not in page(support, document)
    assert "Resend…" not in page(support, document)
    assert "_selected_action" not in support.get(LIST).content.decode()


def test_a_page_that_is_not_there_leads_to_the_list(console: Client) -> None:
    for identifier in (str(ObjectId()), "nonsense"):
        response = console.get(f"{LIST}{identifier}/change/", follow=True)
        assert response.redirect_chain == [(LIST, 302)]
        assert "There is no such notification." in response.content.decode()


def test_who_may_not_see_notifications_sees_no_page(client: Client, db: None) -> None:
    document = factories.accepted(created_at=utc_now())
    nobody = signed_in(make_staff("nobody"))
    assert nobody.get(f"{LIST}{document['_id']}/change/").status_code == 403


def test_a_registered_recipient_is_linked(console: Client, support: Client) -> None:
    now = utc_now()
    document = factories.accepted(created_at=now)
    assert "/admin/recipients/recipient/ada/change/" not in page(console, document)
    collection("recipients").insert_one(
        {"_id": "ada", "attributes": {}, "preferences": {}, "is_active": True}
        | {"created_at": now, "updated_at": now}
    )
    assert "/admin/recipients/recipient/ada/change/" in page(support, document)


def test_an_attempt_leads_to_its_notification(console: Client) -> None:
    now = utc_now()
    document = factories.settled(S.UNKNOWN, at=now, created_at=now)
    factories.settled(S.SENT, at=now, created_at=now)
    url = "/admin/notifications/deliveryattempt/"
    reference = f"{document['_id']}.email.1"
    assert f"{LIST}{document['_id']}/change/" in console.get(url).content.decode()
    for query in ("status=unknown", f"q={document['_id']}", f"q={reference}"):
        assert listed(console, f"{url}?{query}") == [reference], query
    assert listed(console, f"{url}?channel=push") == []


def test_support_sees_no_address_in_a_webhook(console: Client, support: Client) -> None:
    body = '[{"email":"ada@example.com","event":"bounce"}]'
    stored = collection("webhook_log").insert_one(
        {"provider": "sendgrid", "received_at": utc_now(), "body": body, "event_count": 1}
        | {"applied_count": 0, "unmatched_count": 1}
    )
    url = f"/admin/notifications/webhooklog/{stored.inserted_id}/change/"
    assert "ada@example.com" in console.get(url).content.decode()
    masked = support.get(url).content.decode()
    assert "ada@example.com" not in masked
    assert "a***@example.com" in masked


def test_a_webhook_that_is_no_json_is_shown_as_it_is(console: Client) -> None:
    stored = collection("webhook_log").insert_one(
        {"provider": "sendgrid", "received_at": utc_now(), "body": "not <b>JSON</b>"}
        | {"event_count": 0, "applied_count": 0, "unmatched_count": 0}
    )
    url = f"/admin/notifications/webhooklog/{stored.inserted_id}/change/"
    assert "not &lt;b&gt;JSON&lt;/b&gt;" in console.get(url).content.decode()
