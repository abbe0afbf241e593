"""The outbox page with pushes and WhatsApp messages beside mails."""

import pytest

from tests.sandbox.test_outbox import HOSTILE, labels, listed, page
from tests.support.clients.sandbox import Box, Receiver, mail
from tests.support.providers.sandbox_fcm import GRANT, Pushes, push
from tests.support.providers.sandbox_whatsapp import (
    ADA,
    Chats,
    buttons,
    message,
    template,
    text,
    wait_for,
)


@pytest.fixture
def filled(box: Box) -> Box:
    """Give a test an outbox with an accepted and a refused message of each channel."""
    access = Pushes(box=box).sign_in()
    for address in ("ada@example.com", "invalid@example.com"):
        box.send(mail(address))
    for token in ("device-1", "unregistered-1"):
        Pushes(box=box).post({"message": push(token)}, access=access)
    for number in (ADA, "+447700900026"):
        Chats(box=box).post(text(number))
    return box


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("", [7, 6, 5, 4, 3, 2]),
        ("?channel=email", [3, 2]),
        ("?channel=push", [5, 4]),
        ("?channel=whatsapp", [7, 6]),
        ("?channel=whatsapp&show=refused", [7]),
        ("?channel=push&show=accepted&q=device", [4]),
        ("?channel=none", [7, 6, 5, 4, 3, 2]),
        ("?channel=push&before=5", [4]),
    ],
)
def test_the_list_can_be_narrowed_to_a_channel(filled: Box, query: str, ids: list[int]) -> None:
    assert listed(page(filled, f"/{query}")) == ids


def test_a_link_of_one_filter_keeps_the_other_and_the_search(filled: Box) -> None:
    html = page(filled, "/?channel=push&show=refused&q=order")
    assert 'href="/?show=refused&amp;channel=whatsapp&amp;q=order"' in html
    assert 'href="/?show=accepted&amp;channel=push&amp;q=order"' in html
    assert '<input type="hidden" name="channel" value="push">' in html


def test_every_row_says_its_channel(filled: Box) -> None:
    html = page(filled, "/")
    for channel in ("email", "push", "whatsapp"):
        assert html.count(f'role="img" aria-label="{channel}"') == 2


def test_a_push_is_shown_as_a_device_shows_it(box: Box) -> None:
    Pushes(box=box).send(
        android={"notification": {"image": "https://example.com/a.png"}, "ttl": "60s"},
        data={"reference": "ref-1", "deep_link": "https://example.com/orders/1001"},
    )
    html = page(box, "/messages/2")
    assert '<article class="push">' in html
    for words in (
        "<h2>Your order has shipped</h2>",
        "Hello Ada",
        "Picture: https://example.com/a.png",
        "Opens https://example.com/orders/1001",
        "<dt>Android TTL</dt><dd><code>60s</code>",
        "<dt>data.reference</dt>",
        "FCM reports nothing back.",
    ):
        assert words in html
    assert labels(html) == ["accepted"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"apns": {"payload": {"aps": {"alert": {"title": "From APNs"}}}}}, "From APNs"),
        ({"apns": {"payload": {"aps": {"alert": "Only a text"}}}}, "Only a text"),
        ({"webpush": {"notification": {"title": "From the web"}}}, "From the web"),
        ({"data": {"title": "From the data"}}, "From the data"),
        ({"data": {"only": "data"}}, "Nothing is shown: the app gets the data."),
    ],
)
def test_a_push_without_a_notification_shows_what_it_has(
    box: Box, changes: dict[str, object], words: str
) -> None:
    Pushes(box=box).send(notification=None, **changes)
    assert words in page(box, "/messages/2")


def test_a_whatsapp_message_is_shown_as_a_phone_shows_it(box: Box) -> None:
    chats = Chats(box=box)
    chats.add_template()
    chats.post(template())
    chats.post(message("interactive", buttons("Yes", "No")))
    chats.post(message("image", {"link": "https://example.com/a.png", "caption": "A picture"}))
    html = page(box, "/messages/2")
    assert '<article class="bubble">' in html
    for words in (
        "<h2>Order 1001</h2>",
        "Hello Ada, your order 1001 has shipped.",
        "The Shop",
        "<li>Track it</li><li>Thanks</li>",
        "<dt>Template</dt><dd><code>order_shipped</code>",
    ):
        assert words in html
    assert "<li>Yes</li><li>No</li>" in page(box, "/messages/3")
    assert "Picture: https://example.com/a.png" in page(box, "/messages/4")


def test_a_template_that_was_deleted_says_so(box: Box) -> None:
    chats = Chats(box=box)
    chats.add_template()
    chats.post(template())
    chats.graph(
        "DELETE", f"{chats.account.business_account_id}/message_templates?name=order_shipped"
    )
    assert "(This template was deleted.)" in page(box, "/messages/2")


def test_reports_are_chips_and_events(chat_box: Box, meta_receiver: Receiver) -> None:
    Chats(box=chat_box).send("+447700900002")
    wait_for(meta_receiver, "sent", "delivered", "read")
    assert labels(page(chat_box, "/")) == ["sent", "delivered", "read"]
    assert "biz_opaque_callback_data" in page(chat_box, "/messages/1")


def test_signing_in_is_listed_only_when_it_fails(box: Box) -> None:
    pushes = Pushes(box=box)
    pushes.sign_in()
    pushes.ask(grant_type=GRANT, assertion=pushes.assertion(iss="other@example.com"))
    html = page(box, "/")
    assert listed(html) == [2]
    assert "Invalid grant: account not found" in html
    Chats(box=box).add_template()
    assert listed(page(box, "/")) == [2]


def test_a_message_that_was_only_checked_is_not_a_refusal(box: Box) -> None:
    Pushes(box=box).post({"message": push(), "validate_only": True})
    html = page(box, "/")
    assert (labels(html), "row refused" in html) == (["only-checked"], False)


def test_a_message_that_was_accepted_twice_says_so(box: Box) -> None:
    for _ in range(2):
        box.send(mail("no-events@example.com"))
    assert labels(page(box, "/")) == ["2 copies", "accepted", "2 copies", "accepted"]
    html = page(box, "/messages/1")
    assert "<dt>Accepted 2 times</dt>" in html
    assert 'href="/messages/2">#2</a>' in html


def test_a_recipient_that_fails_on_purpose_can_be_fixed_and_broken_again(box: Box) -> None:
    chats = Chats(box=box)
    number = "+447700900500"
    assert chats.send(number).status == 500
    path = "/messages/1/let-through"
    assert f'action="{path}"' in page(box, "/messages/1")
    answer = box.http.request("POST", box.sandbox.url + path, redirect=False)
    assert (answer.status, answer.headers["Location"]) == (303, "/messages/1")
    assert chats.send(number).status == 200
    assert "Break it again" in page(box, "/messages/1")
    box.http.request("POST", box.sandbox.url + path, redirect=False)
    assert chats.send(number).status == 500


def test_nothing_is_offered_where_there_is_nothing_to_fix(box: Box) -> None:
    box.send(mail())
    box.send(b"{")
    for number in (1, 2):
        assert "let-through" not in page(box, f"/messages/{number}")
    for number in (2, 3):
        url = f"{box.sandbox.url}/messages/{number}/let-through"
        assert box.http.request("POST", url).status == 404


def test_a_page_of_another_site_fixes_nothing(box: Box) -> None:
    box.send(mail("server-error@example.com"))
    answer = box.http.request(
        "POST",
        f"{box.sandbox.url}/messages/1/let-through",
        headers={"Sec-Fetch-Site": "cross-site"},
        redirect=False,
    )
    assert answer.status == 403
    assert box.control("GET", "/behaviours")["results"] == []


def test_hostile_pushes_and_chats_are_escaped_everywhere(box: Box) -> None:
    chats, pushes = Chats(box=box), Pushes(box=box)
    access = pushes.sign_in()
    said = {"title": HOSTILE, "body": HOSTILE, "image": HOSTILE}
    hostile = push(notification=said, data={"deep_link": HOSTILE, HOSTILE: HOSTILE})
    pushes.post({"message": hostile}, access=access)
    pushes.post({"message": push(HOSTILE)}, access=access)
    pushes.post({HOSTILE: HOSTILE}, access=access)
    chats.post(text(text={"body": HOSTILE}, reference=HOSTILE))
    chats.post(text(HOSTILE))
    chats.post(message("interactive", buttons("<b>x</b>")))
    paths = ["/", *(f"/messages/{one}" for one in range(2, 8))]
    for path in (*paths, *(f"{one}?view=request" for one in paths[1:])):
        html = page(box, path)
        assert "<script>alert" not in html
        assert "<img src=x" not in html
        assert "<b>x</b>" not in html


def test_every_providers_magic_recipients_are_on_the_page(box: Box) -> None:
    html = page(box, "/recipients")
    for name in ("bounce@", "unregistered-…", "…900026", "invalid-grant"):
        assert f"<code>{name}</code>" in html
