"""The outbox of the sandbox: the list, messages of every channel, and mail frames."""

import base64
import re
from typing import Any

import pytest

from domain.states import Category
from notifyproject.platform.event_loop import run
from providers.contract import Message, SendRequest
from sandbox.outbox import STATIC
from tests.support.clients.sandbox import Box, Receiver, mail
from tests.support.providers.sandbox_fcm import GRANT, FCMClient, push
from tests.support.providers.sandbox_whatsapp import (
    ADA,
    WhatsAppClient,
    message,
    template,
    text,
    wait_for,
)
from tests.support.waiting import LIMIT, until

HOSTILE = "</title><script>alert(1)</script><img src=x onerror=alert(1)>\"'{{ 7 | times: 7 }}"


def page(box: Box, path: str) -> str:
    answer = box.get(path)
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    return answer.data.decode()


def labels(html: str) -> list[str]:
    """Return the texts of the status labels in a page."""
    return re.findall(r'class="chip [^>]*>([^<]+)<', html)


def listed(html: str) -> list[int]:
    return [int(found) for found in re.findall(r'href="/messages/(\d+)"', html)]


def test_empty_outbox_links_to_the_recipients(box: Box) -> None:
    html = page(box, "/")
    assert "Nothing yet." in html
    assert 'href="/recipients"' in html


def test_list_is_newest_first_with_states(box: Box, receiver: Receiver) -> None:
    box.send(mail("ada@example.com"))
    box.send(mail("bounce@example.com", subject="Contest", reference="ref-2"))
    receiver.wait_for("ref-1", "processed", "delivered")
    receiver.wait_for("ref-2", "processed", "bounce")
    html = page(box, "/")
    assert listed(html) == [2, 1]
    assert labels(html) == ["processed", "bounce", "processed", "delivered"]
    for words in ("ada@example.com", "Your order has shipped", "Hello Ada", "Contest"):
        assert words in html


def test_list_has_refused_requests_with_their_reasons(box: Box) -> None:
    box.send(mail("invalid@example.com"))
    box.send(b"{", key="SG.revoked")
    html = page(box, "/")
    assert labels(html) == ["401", "400"]
    assert "Does not contain a valid address. (personalizations.0.to.0.email)" in html
    assert "The provided authorization grant is invalid" in html
    assert "POST /v3/mail/send" in html
    assert labels(page(box, "/messages/1")) == ["400"]


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("", [3, 2, 1]),
        ("?q=ADA", [3, 1]),
        ("?q=sale+ada", [3]),
        ("?q=ref-2", [2]),
        ("?q=nobody", []),
        ("?show=accepted", [2, 1]),
        ("?show=refused", [3]),
        ("?show=refused&q=ref-2", []),
        ("?show=nonsense", [3, 2, 1]),
        ("?before=3", [2, 1]),
        ("?before=x", [3, 2, 1]),
    ],
)
def test_list_is_searched_and_filtered(box: Box, query: str, ids: list[int]) -> None:
    box.send(mail("ada@example.com"))
    box.send(mail("bob@example.com", reference="ref-2"))
    box.send(mail("invalid+ada@example.com", subject="New sale"))
    assert listed(page(box, f"/{query}")) == ids


def test_long_list_continues_on_a_second_page(box: Box) -> None:
    for _ in range(55):
        box.send(mail("no-events@example.com"))
    first = page(box, "/?q=no-events")
    assert listed(first) == list(range(55, 5, -1))
    assert 'href="/?before=6&amp;show=all&amp;q=no-events"' in first
    assert listed(page(box, "/?before=6&show=all&q=no-events")) == [5, 4, 3, 2, 1]


def test_message_page_shows_html_text_request_and_events(box: Box, receiver: Receiver) -> None:
    box.send(mail("spam@example.com"))
    receiver.wait_for("ref-1", "processed", "delivered", "spamreport")
    html = page(box, "/messages/1")
    assert '<iframe sandbox="" title="The mail" src="/messages/1/html"></iframe>' in html
    for words in ("The Shop &lt;shop@example.com&gt;", "ref-1", "spamreport", "sg_event_id"):
        assert words in html
    assert "Hello Ada" in page(box, "/messages/1?view=text")
    request = page(box, "/messages/1?view=request")
    assert "personalizations" in request
    assert "content-type: application/json" in request
    assert "uthorization" not in request


def test_mail_without_html_shows_its_text(box: Box) -> None:
    box.send(mail(content=[{"type": "text/plain", "value": "Only text"}]))
    html = page(box, "/messages/1?view=html")
    assert "Only text" in html
    assert "<iframe" not in html


def test_message_without_an_answer_has_a_chip(box: Box) -> None:
    box.control("PUT", "/behaviours/*", {"outcome": "reset", "times": 1})
    with pytest.raises(Exception, match="Connection aborted"):
        box.send(mail("no-events@example.com"))
    assert labels(page(box, "/"))[0] == "reset"


def test_frame_of_a_mail_runs_and_loads_nothing(box: Box) -> None:
    box.send(mail())
    answer = box.get("/messages/1/html")
    policy = answer.headers["Content-Security-Policy"]
    assert answer.data == b'<div dir="auto"><p>Hello Ada</p></div>'
    assert policy.startswith("sandbox; default-src 'none';")
    assert "img-src data:;" in policy
    with_images = box.get("/messages/1/html?images").headers["Content-Security-Policy"]
    assert "img-src data: http: https:;" in with_images
    assert "script-src" not in with_images


@pytest.mark.parametrize("path", ["/", "/messages/1", "/messages/1?view=request", "/recipients"])
def test_page_allows_only_its_own_script_and_style(box: Box, path: str) -> None:
    box.send(mail())
    answer = box.get(path)
    assert (
        "default-src 'none'; style-src 'self'; script-src 'self'"
        in (answer.headers["Content-Security-Policy"])
    )
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    html = answer.data.decode()
    assert re.findall(r"<script(?! src=\"/static/outbox.js\" defer>)", html) == []
    assert re.findall(r"\son\w+=|\sstyle=|(?:src|href)=\"https?:", html) == []


def test_hostile_mail_is_escaped(box: Box, receiver: Receiver) -> None:
    args = {"reference": HOSTILE, HOSTILE: HOSTILE}
    to = [{"email": "dropped@example.com", "name": HOSTILE}]
    box.send(
        mail(
            subject=HOSTILE,
            personalizations=[{"to": to, "custom_args": args}],
            content=[{"type": "text/plain", "value": HOSTILE}],
            **{"from": {"email": "shop@example.com", "name": HOSTILE}},
        ),
        **{"X-Hostile": "<script>alert(1)</script>"},
    )
    receiver.wait_for(HOSTILE, "dropped")
    box.send(mail(HOSTILE, subject=HOSTILE))
    box.send(b"<script>alert(1)</script>")
    paths = ["/", "/?q=%22%3E%3Cscript%3Ealert(1)", "/?show=%3Cscript%3E", "/messages/1"]
    paths += [
        f"/messages/{number}?view={view}" for number in (1, 2, 3) for view in ("text", "request")
    ]
    for path in paths:
        html = page(box, path)
        assert "<script>alert" not in html
        assert "<img src=x" not in html
        assert "49" not in re.sub(r"\d\d:\d\d:\d\d\S*|\d{10}", "", html.partition("<main")[0])
    assert "{{ 7 | times: 7 }}" in page(box, "/messages/1?view=text")


def test_unchanged_page_returns_304(box: Box, receiver: Receiver) -> None:
    box.send(mail("dropped@example.com"))
    for number, path in enumerate(("/", "/messages/1"), start=1):
        until(lambda n=number: box.control("GET", "/counters")["webhooks"]["sent"] == n)
        etag = box.get(path).headers["ETag"]
        assert box.get(path, **{"If-None-Match": etag}).status == 304
        box.control("POST", "/events", {"reference": "ref-1", "kind": "open"})
        until(lambda p=path, e=etag: box.get(p, **{"If-None-Match": e}).status == 200)


def test_page_shows_a_failing_webhook_until_it_succeeds(box: Box, receiver: Receiver) -> None:
    receiver.answers = [403, 403]
    box.send(mail("dropped@example.com"))
    until(lambda: "Webhooks do not get through." in page(box, "/"))
    receiver.wait_for("ref-1", "dropped")
    until(lambda: "Webhooks do not get through." not in page(box, "/"))


@pytest.mark.parametrize(
    "path",
    ["/messages/1", "/messages/1/html", "/messages/999999999999999999", "/static/x", "/nothing"],
)
def test_unknown_page_returns_404(box: Box, path: str) -> None:
    answer = box.get(path)
    assert (answer.status, b"Not here" in answer.data) == (404, True)


def test_refused_mail_has_no_html(box: Box) -> None:
    box.send(mail("invalid@example.com"))
    assert box.get("/messages/1/html").status == 404


@pytest.mark.parametrize(("name", "kind"), STATIC.items())
def test_style_and_script_load_nothing_else(box: Box, name: str, kind: str) -> None:
    answer = box.get(f"/static/{name}")
    assert (answer.status, answer.headers["Content-Type"]) == (200, f"{kind}; charset=utf-8")
    assert re.findall(rb"https?://|@import|url\(", answer.data) == []


@pytest.fixture
def filled(box: Box) -> Box:
    """Return a sandbox with an accepted and a refused message of each channel."""
    access = FCMClient(box=box).sign_in()
    for address in ("ada@example.com", "invalid@example.com"):
        box.send(mail(address))
    for token in ("device-1", "unregistered-1"):
        FCMClient(box=box).post({"message": push(token)}, access=access)
    for number in (ADA, "+447700900026"):
        WhatsAppClient(box=box).post(text(number))
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
def test_list_is_filtered_by_channel(filled: Box, query: str, ids: list[int]) -> None:
    assert listed(page(filled, f"/{query}")) == ids


def test_link_of_a_filter_keeps_the_other_filter_and_the_search(filled: Box) -> None:
    html = page(filled, "/?channel=push&show=refused&q=order")
    assert 'href="/?show=refused&amp;channel=whatsapp&amp;q=order"' in html
    assert 'href="/?show=accepted&amp;channel=push&amp;q=order"' in html
    assert '<input type="hidden" name="channel" value="push">' in html


def test_row_shows_its_channel(filled: Box) -> None:
    html = page(filled, "/")
    for channel in ("email", "push", "whatsapp"):
        assert html.count(f'role="img" aria-label="{channel}"') == 2


def test_push_is_shown_as_on_a_device(box: Box) -> None:
    FCMClient(box=box).send(
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
def test_push_without_a_notification_shows_other_content(
    box: Box, changes: dict[str, object], words: str
) -> None:
    FCMClient(box=box).send(notification=None, **changes)
    assert words in page(box, "/messages/2")


def test_whatsapp_message_is_shown_as_on_a_phone(box: Box) -> None:
    chats = WhatsAppClient(box=box)
    chats.add_template()
    chats.post(template())
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
    assert "Picture: https://example.com/a.png" in page(box, "/messages/3")


def test_message_of_a_deleted_template_is_shown_without_text(box: Box) -> None:
    chats = WhatsAppClient(box=box)
    chats.add_template()
    chats.post(template())
    chats.graph(
        "DELETE", f"{chats.account.business_account_id}/message_templates?name=order_shipped"
    )
    assert "(This template was deleted.)" in page(box, "/messages/2")


def test_whatsapp_statuses_are_chips_and_events(chat_box: Box, meta_receiver: Receiver) -> None:
    WhatsAppClient(box=chat_box).send("+447700900002")
    wait_for(meta_receiver, "sent", "delivered", "read")
    assert labels(page(chat_box, "/")) == ["sent", "delivered", "read"]
    assert "biz_opaque_callback_data" in page(chat_box, "/messages/1")


def test_sign_in_is_listed_only_if_it_fails(box: Box) -> None:
    pushes = FCMClient(box=box)
    pushes.sign_in()
    pushes.ask(grant_type=GRANT, assertion=pushes.assertion(iss="other@example.com"))
    html = page(box, "/")
    assert listed(html) == [2]
    assert "Invalid grant: account not found" in html
    WhatsAppClient(box=box).add_template()
    assert listed(page(box, "/")) == [2]


def test_validated_push_is_not_shown_as_refused(box: Box) -> None:
    FCMClient(box=box).post({"message": push(), "validate_only": True})
    html = page(box, "/")
    assert (labels(html), "row refused" in html) == (["only-checked"], False)


def test_message_accepted_twice_shows_its_copies(box: Box) -> None:
    for _ in range(2):
        box.send(mail("no-events@example.com"))
    assert labels(page(box, "/")) == ["2 copies", "accepted", "2 copies", "accepted"]
    html = page(box, "/messages/1")
    assert "<dt>Accepted 2 times</dt>" in html
    assert 'href="/messages/2">#2</a>' in html


def test_let_through_accepts_messages_and_a_second_one_undoes_it(box: Box) -> None:
    chats = WhatsAppClient(box=box)
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


def test_let_through_is_not_offered_without_a_failing_outcome(box: Box) -> None:
    box.send(mail())
    box.send(b"{")
    for number in (1, 2):
        assert "let-through" not in page(box, f"/messages/{number}")
    for number in (2, 3):
        url = f"{box.sandbox.url}/messages/{number}/let-through"
        assert box.http.request("POST", url).status == 404


def test_let_through_by_another_site_is_refused(box: Box) -> None:
    box.send(mail("server-error@example.com"))
    answer = box.http.request(
        "POST",
        f"{box.sandbox.url}/messages/1/let-through",
        headers={"Sec-Fetch-Site": "cross-site"},
        redirect=False,
    )
    assert answer.status == 403
    assert box.control("GET", "/behaviours")["results"] == []


def test_hostile_pushes_and_chats_are_escaped(box: Box) -> None:
    chats, pushes = WhatsAppClient(box=box), FCMClient(box=box)
    access = pushes.sign_in()
    said = {"title": HOSTILE, "body": HOSTILE, "image": HOSTILE}
    hostile = push(notification=said, data={"deep_link": HOSTILE, HOSTILE: HOSTILE})
    pushes.post({"message": hostile}, access=access)
    pushes.post({"message": push(HOSTILE)}, access=access)
    pushes.post({HOSTILE: HOSTILE}, access=access)
    chats.post(text(text={"body": HOSTILE}, reference=HOSTILE))
    chats.post(text(HOSTILE))
    chats.post(message("image", {"id": "1", "caption": "<b>x</b>"}))
    paths = ["/", *(f"/messages/{number}" for number in range(2, 8))]
    for path in (*paths, *(f"{path}?view=request" for path in paths[1:])):
        html = page(box, path)
        assert "<script>alert" not in html
        assert "<img src=x" not in html
        assert "<b>x</b>" not in html


def test_recipients_page_has_those_of_all_providers(box: Box) -> None:
    html = page(box, "/recipients")
    for name in ("bounce@", "server_error@", "unregistered-…", "…900026", "invalid-grant"):
        assert f"<code>{name}</code>" in html


HOSTILE_HTML = "<script>alert(1)</script>"

PEOPLE = ("ada@example.com", "bob@example.com", "eve@example.com")


def link(address: str) -> str:
    return f"https://notify.example.com/u/{address.partition('@')[0]}-token"


def campaign(address: str) -> SendRequest:
    url = link(address)
    return SendRequest(
        reference=f"ref-{address}",
        recipient=address,
        category=Category.MARKETING.value,
        message=Message(
            subject="Sale",
            text=f"All is cheap. No more of this: {url}",
            html=f'<p>All is cheap. <a href="{url}">No more of this</a></p>',
            unsubscribe_url=url,
        ),
    )


def mail_page(box: Box, query: str = "", part: str = "") -> str:
    (request,) = box.requests()
    answer = box.get(f"/messages/{request['id']}{part}{query}")
    assert answer.status == 200
    return answer.data.decode()


def send(box: Box, **changes: Any) -> None:
    answer = box.send(mail(**changes))
    assert answer.status == 202, answer.data


def personal(**fields: Any) -> list[dict[str, Any]]:
    return [{"to": [{"email": "ada@example.com"}], **fields}]


@pytest.mark.parametrize(("number", "address"), [*enumerate(PEOPLE)])
def test_mail_to_many_shows_each_recipient_their_own_link(
    shared_box: Box, number: int, address: str
) -> None:
    run(shared_box.account().send_many([campaign(person) for person in PEOPLE], timeout=LIMIT))
    query = f"?to={number}"
    for shown in (
        mail_page(shared_box, query, "/html"),
        mail_page(shared_box, f"{query}&view=text"),
    ):
        assert link(address) in shown
        assert not [person for person in PEOPLE if person != address and link(person) in shown]
        assert re.findall(r"-[0-9a-f]{16}-", shown.partition("<aside")[0]) == []
    assert f"&lt;{link(address)}&gt;" in mail_page(shared_box, query)
    frame = f"/html?to={number}" if number else "/html"
    assert f'/messages/1{frame}"' in re.sub(
        r"/messages/\d+", "/messages/1", mail_page(shared_box, query)
    )


def test_mail_to_many_links_to_the_view_of_each_recipient(shared_box: Box) -> None:
    run(shared_box.account().send_many([campaign(person) for person in PEOPLE], timeout=LIMIT))
    html = mail_page(shared_box, "?to=1&view=text")
    for number, address in enumerate(PEOPLE):
        current = ' aria-current="true"' if number == 1 else ""
        assert f'<a href="?view=text&amp;to={number}"{current}>{address}</a>' in html
    assert 'href="?view=html&amp;to=1"' in html


@pytest.mark.parametrize("query", ["?to=3", "?to=-1", "?to=x", "?to=", ""])
def test_unknown_recipient_shows_the_view_of_the_first(shared_box: Box, query: str) -> None:
    run(shared_box.account().send_many([campaign(person) for person in PEOPLE], timeout=LIMIT))
    assert link(PEOPLE[0]) in mail_page(shared_box, query, "/html")


def test_unsubscribe_headers_are_shown(shared_box: Box) -> None:
    run(shared_box.account().send(campaign("ada@example.com"), timeout=LIMIT))
    html = mail_page(shared_box)
    assert "<dt>List-Unsubscribe</dt>" in html
    assert f"<code>&lt;{link('ada@example.com')}&gt;</code>" in html
    assert "<code>List-Unsubscribe=One-Click</code>" in html


def test_reply_to_is_shown(shared_box: Box) -> None:
    send(shared_box, reply_to={"email": "help@example.com", "name": "Help"})
    assert "<dt>Reply-To</dt><dd><code>Help &lt;help@example.com&gt;</code></dd>" in mail_page(
        shared_box
    )


def test_headers_of_a_recipient_precede_shared_ones(shared_box: Box) -> None:
    own = personal(headers={"X-Kind": "own"})
    send(shared_box, headers={"X-Kind": "shared", "X-Other": "both"}, personalizations=own)
    html = mail_page(shared_box)
    assert "<code>own</code>" in html
    assert "<code>shared</code>" not in html
    assert "<code>both</code>" in html


def attachment(name: str, content: bytes, **fields: Any) -> dict[str, str]:
    return {"filename": name, "content": base64.b64encode(content).decode(), **fields}


def test_attachments_are_shown_with_their_size(shared_box: Box) -> None:
    files = [
        attachment("invoice.pdf", b"x" * 3_000, type="application/pdf", disposition="attachment"),
        attachment("one.txt", b"x"),
        attachment("logo.png", b"x" * 2_621_440, type="image/png", disposition="inline"),
    ]
    send(shared_box, attachments=files)
    html = re.sub(r"\s+", " ", mail_page(shared_box))
    assert "<strong>invoice.pdf</strong> <small>application/pdf, 2.9 KB</small>" in html
    assert "<strong>one.txt</strong> <small>1 byte</small>" in html
    assert "<strong>logo.png</strong> <small>image/png, 2.5 MB</small>" in html
    assert 'class="files"' not in mail_page(shared_box, "?view=request")


def test_mail_without_attachments_has_no_list_of_them(shared_box: Box) -> None:
    send(shared_box)
    assert 'class="files"' not in mail_page(shared_box)


def test_substitutions_apply_once_and_longest_first(shared_box: Box) -> None:
    own = personal(substitutions={"-a-": "-ab-", "-ab-": "done", "%x%": "$&\\1"}, subject="S -a-")
    send(
        shared_box,
        content=[{"type": "text/plain", "value": "-ab- -a- %x%"}],
        personalizations=own,
        reply_to={"email": "help@example.com", "name": "-ab-"},
    )
    (found,) = shared_box.control("GET", "/messages")["results"]
    assert found["text"] == "done -ab- $&\\1"
    assert found["subject"] == "S -ab-"
    assert found["headers"] == {"Reply-To": "done <help@example.com>"}


def test_messages_list_shows_the_view_of_the_filtered_recipient(shared_box: Box) -> None:
    run(shared_box.account().send_many([campaign(person) for person in PEOPLE], timeout=LIMIT))
    for address in PEOPLE:
        (found,) = shared_box.control("GET", f"/messages?recipient={address.upper()}")["results"]
        assert link(address) in found["text"]
        assert link(address) in found["html"]
        assert found["headers"]["List-Unsubscribe"] == f"<{link(address)}>"
        assert found["attachments"] == []


def test_hostile_attachments_headers_and_substitutions_are_escaped(shared_box: Box) -> None:
    send(
        shared_box,
        attachments=[attachment(HOSTILE_HTML, b"x", type=f"text/{HOSTILE_HTML}")],
        personalizations=personal(
            headers={"X-Odd": HOSTILE_HTML}, substitutions={"Hello": HOSTILE_HTML}
        ),
    )
    for query in ("", "?view=text", "?view=request"):
        assert HOSTILE_HTML not in mail_page(shared_box, query)
