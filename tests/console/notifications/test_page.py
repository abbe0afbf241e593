"""The page of one notification: content, resend risk, and masked addresses."""

import re
from typing import Any

import pytest
from bson import ObjectId
from django.contrib.admin.models import LogEntry
from django.test import Client

from access.clients import registry
from domain.channels import Channel
from domain.content import Content
from domain.states import DeliveryStatus
from domain.time import utc_now
from notifications.catalog.types import MASK
from notifications.store import leases, removal
from notifyproject.db.collections import collection
from recipients.models import SuppressionReason
from tests.support.clients.console import listed, make_staff, signed_in
from tests.support.factories import notifications as factories

pytestmark = pytest.mark.usefixtures("db", "broker")

LIST = "/admin/notifications/notification/"
FAILED = "/admin/notifications/failednotification/"
ADA = "ada@example.com"
VIEW = "notifications.view_notification"
REVEAL = "notifications.reveal_addresses"
MASKED_CODE = Content(
    subject="Your code", body=f"Use {MASK}", template_id="mfa_code", is_masked=True
)
S = DeliveryStatus


@pytest.fixture
def document() -> Any:
    now = utc_now()
    return factories.settled(S.FAILED, at=now, created_at=now)


def page(client: Client, document: Any) -> str:
    response = client.get(f"{LIST}{document['_id']}/change/")
    assert response.status_code == 200
    return response.content.decode()


def test_page_shows_result_cause_and_attempts(console: Client) -> None:
    now = utc_now()
    document = factories.settled(S.FAILED, at=now, created_at=now, entity_id="order-7")
    shown = page(console, document)
    for words in (
        "Email failed once: provider error (5xx). No more retries.",
        "The provider had a problem of its own. (503)",
        "retry when it has recovered.",
        "Attempt 1 <span",
        "SendGrid · 12 ms",
        "&quot;status&quot;: 503",
        "Payment confirmed to ada",
        "order-7",
        "1 of 4",
    ):
        assert words in shown, words


def test_advice_links_the_page_of_the_failure_code(
    document: Any, console: Client, settings: Any
) -> None:
    assert "About this failure" not in page(console, document)
    settings.DOCS_URL = "https://docs.example.com"
    link = '<a href="https://docs.example.com/failures/provider_error.html">About this failure</a>'
    assert link in page(console, document)


def test_page_shows_the_trace_id(console: Client) -> None:
    now = utc_now()
    traced = factories.accepted(created_at=now, traceparent=f"00-{'a1' * 16}-{'b' * 16}-01")
    assert "a1" * 16 in page(console, traced)
    assert "Trace" not in page(console, factories.accepted(created_at=now))


def test_email_is_shown_in_a_sandboxed_frame(console: Client) -> None:
    evil = Content(subject="Hi", body='<script>alert(1)</script> & "quotes"')
    shown = page(console, factories.accepted(created_at=utc_now(), content=evil))
    frame = re.search(r'<iframe[^>]*sandbox=""[^>]*src="([^"]*)"', shown)
    assert frame is not None
    framed = console.get(frame[1])
    policy = framed["Content-Security-Policy"]
    assert policy.startswith("sandbox; default-src 'none'; ")
    assert "frame-ancestors 'self'" in policy
    assert framed["X-Frame-Options"] == "SAMEORIGIN"
    for text in (shown, framed.content.decode()):
        assert "<script>alert" not in text
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_page_without_email_has_no_frame(console: Client) -> None:
    shown = page(console, factories.accepted(created_at=utc_now(), channels=(Channel.IN_APP,)))
    assert "<iframe" not in shown
    assert "Your payment has arrived." in shown


def test_each_channel_shows_its_own_text(console: Client) -> None:
    content = Content(
        subject="Paid", body="By body.", template_id="payment_confirmed", template_version=0
    )
    document = factories.accepted(
        created_at=utc_now(),
        channels=(Channel.EMAIL, Channel.PUSH, Channel.IN_APP),
        content=content,
        data={"order_id": 1001, "video_title": "Sunrise", "amount": "49.90"},
    )
    messages = console.get(f"{LIST}{document['_id']}/change/").context["shown"].messages
    assert [message.channel for message in messages] == ["Email", "Push", "In-app"]
    email, push, in_app = messages
    assert email.html is not None
    assert push.text == "Your payment of 49.90 has arrived. Order number: 1001."
    assert in_app.text == "By body."


def test_sensitive_values_are_masked(console: Client) -> None:
    data = {"code": "483920", "expires_in": 5}
    document = factories.accepted(
        created_at=utc_now(), type="mfa_code", data=data, content=MASKED_CODE
    )
    shown = page(console, document)
    assert "483920" not in shown
    assert MASK in shown
    assert "Sensitive values are masked." in shown


def test_data_of_an_unknown_type_is_hidden(console: Client) -> None:
    document = factories.accepted(created_at=utc_now(), type="gone", data={"code": "483920"})
    assert "483920" not in page(console, document)


def test_unrenderable_content_is_shown_as_stored(console: Client) -> None:
    document = factories.accepted(created_at=utc_now(), type="mfa_code", content=MASKED_CODE)
    shown = page(console, document)
    assert "The template needs the variable" in shown
    assert f"Use {MASK}" in shown


def test_page_masks_addresses_for_support(console: Client, support: Client) -> None:
    now = utc_now()
    begun = factories.started(
        at=now, created_at=now, data={"to": "ada@example.com", "count": 3, "list": ["b@c.example"]}
    )
    response = {"status": 400, "excerpt": "no such user ada@example.com"}
    outcome = factories.settlement(
        begun, S.FAILED, at=now, response=response, reason="ada@example.com is wrong"
    )
    leases.settle([outcome], now=now)
    document = factories.read(begun.notification_id)
    masked, whole = page(support, document), page(console, document)
    for words in (ADA, "+351912345678"):
        assert words in whole
        assert words not in masked
    assert "b@c.example" not in masked
    assert "a***@example.com" in masked
    assert "+351******678" in masked


def test_page_offers_support_no_forbidden_action(
    document: Any, support: Client, console: Client
) -> None:
    assert "Retry failed channels" in page(console, document)
    assert "Retry failed channels" not in page(support, document)
    assert ">Resend</button>" not in page(support, document)
    assert "_selected_action" not in support.get(LIST).content.decode()


def test_unknown_notification_redirects_to_the_list(console: Client) -> None:
    for identifier in (str(ObjectId()), "nonsense"):
        response = console.get(f"{LIST}{identifier}/change/", follow=True)
        assert response.redirect_chain == [(LIST, 302)]
        assert "Notification not found." in response.content.decode()


def test_page_requires_the_view_permission(client: Client, db: None) -> None:
    document = factories.accepted(created_at=utc_now())
    nobody = signed_in(make_staff("nobody"))
    assert nobody.get(f"{LIST}{document['_id']}/change/").status_code == 403


def test_recipient_is_linked_if_it_may_be_viewed(console: Client) -> None:
    document = factories.accepted(created_at=utc_now())
    assert "/admin/recipients/recipient/ada/change/" in page(console, document)
    nobody = factories.accepted(created_at=utc_now(), user_id=None)
    assert "/admin/recipients/recipient/None" not in page(console, nobody)
    client = signed_in(make_staff("rui", "notifications.view_notification"))
    assert "/admin/recipients/recipient/ada" not in page(client, document)


def test_attempt_links_its_notification(console: Client) -> None:
    now = utc_now()
    document = factories.settled(S.UNKNOWN, at=now, created_at=now)
    factories.settled(S.SENT, at=now, created_at=now)
    url = "/admin/notifications/deliveryattempt/"
    reference = f"{document['_id']}.email.1"
    assert f"{LIST}{document['_id']}/change/" in console.get(url).content.decode()
    for query in ("status=unknown", f"q={document['_id']}", f"q={reference}"):
        assert listed(console, f"{url}?{query}") == [reference], query
    assert listed(console, f"{url}?channel=push") == []


def test_webhook_masks_addresses_for_support(console: Client, support: Client) -> None:
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


def test_webhook_without_json_is_shown_escaped(console: Client) -> None:
    stored = collection("webhook_log").insert_one(
        {"provider": "sendgrid", "received_at": utc_now(), "body": "not <b>JSON</b>"}
        | {"event_count": 0, "applied_count": 0, "unmatched_count": 0}
    )
    url = f"/admin/notifications/webhooklog/{stored.inserted_id}/change/"
    assert "not &lt;b&gt;JSON&lt;/b&gt;" in console.get(url).content.decode()


def test_revealed_addresses_are_shown_once_and_audited(document: Any) -> None:
    operator = signed_in(make_staff("rui", VIEW, REVEAL))
    before = page(operator, document)
    assert ADA not in before
    assert "Reveal addresses" in before
    revealed = operator.post(f"{LIST}{document['_id']}/reveal/").content.decode()
    assert ADA in revealed
    assert "Revealed for this view. Audited." in revealed
    (entry,) = LogEntry.objects.all()
    assert (entry.user.username, entry.change_message) == ("rui", "Revealed addresses.")
    assert ADA not in entry.object_repr
    after = page(operator, document)
    assert ADA not in after
    assert "Revealed addresses." in after


def test_revealing_requires_both_permissions(document: Any) -> None:
    for permission in (VIEW, REVEAL):
        client = signed_in(make_staff(permission, permission))
        assert client.post(f"{LIST}{document['_id']}/reveal/").status_code == 403
    assert not LogEntry.objects.exists()


def test_reveal_is_not_offered_to_those_who_see_addresses(document: Any, console: Client) -> None:
    assert "Reveal addresses" not in page(console, document)


def test_deleted_notification_is_found_and_restored() -> None:
    first, other = (
        factories.settled(S.FAILED, at=(now := utc_now()), created_at=now) for _ in range(2)
    )
    removal.delete(notification_id=first["_id"], client_id=first["client_id"], now=utc_now())
    restore = f"{LIST}{first['_id']}/restore/"
    viewer = signed_in(make_staff("eva", VIEW))
    assert listed(viewer, f"{LIST}?deleted=yes") == [first["_id"]]
    assert listed(viewer, f"{LIST}?deleted=no") == [other["_id"]]
    assert "Deleted" in page(viewer, first)
    assert restore not in page(viewer, first)
    assert viewer.post(restore).status_code == 403
    permissions = ("retry", "resend", "restore")
    operator = signed_in(
        make_staff("rui", VIEW, *(f"notifications.{name}_notification" for name in permissions))
    )
    assert "Retry failed channels" not in page(operator, first)
    answer = operator.post(restore, follow=True).content.decode()
    assert "1 notification restored. Cancelled deliveries stay cancelled." in answer
    assert "Retry failed channels" in answer
    assert listed(viewer, f"{LIST}?deleted=yes") == []
    (entry,) = LogEntry.objects.all()
    assert (entry.user.username, entry.change_message) == (
        "rui",
        "Restored what its client had deleted.",
    )
    again = operator.post(restore, follow=True).content.decode()
    assert "1 skipped: It isn&#x27;t deleted" in again


def test_page_shows_the_resend_risk(document: Any, console: Client) -> None:
    shown = page(console, document)
    assert "Resend: safe" in shown
    assert "Provider error; nothing was sent." in shown
    factories.suppress(ADA, reason=SuppressionReason.COMPLAINT, at=utc_now())
    shown = page(console, document)
    assert "Resend: suppressed" in shown
    assert "The address is suppressed: complaint." in shown


def test_failed_list_shows_the_resend_risk(document: Any, console: Client) -> None:
    shown = console.get(FAILED).content.decode()
    assert 'title="Provider error; nothing was sent.">Safe' in shown


def test_sent_notification_shows_no_resend_risk(console: Client) -> None:
    now = utc_now()
    channels = (Channel.EMAIL, Channel.IN_APP)
    sent = factories.settled(S.SENT, at=now, created_at=now, channels=channels)
    assert "Resend: " not in page(console, sent)


def test_audit_log_shows_the_clients_name(console: Client) -> None:
    app = registry.create_client(name="Shop", scopes=[], now=utc_now())
    entry = {"object_repr": "ada", "action_flag": 2, "change_message": "Exported."}
    LogEntry.objects.create(user_id=app, **entry)
    shown = console.get("/admin/admin/logentry/").content.decode()
    assert "Client Shop" in shown
    narrowed = console.get(f"/admin/admin/logentry/?user={app}").context["cl"].result_list
    assert [row.object_repr for row in narrowed] == ["ada"]
