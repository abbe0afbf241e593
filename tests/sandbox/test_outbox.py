"""The outbox page, as HTML."""

import re

import pytest

from sandbox.outbox import STATIC
from tests.support.clients.sandbox import Box, Receiver, mail
from tests.support.waiting import until

HOSTILE = "</title><script>alert(1)</script><img src=x onerror=alert(1)>\"'{{ 7 | times: 7 }}"


def page(box: Box, path: str) -> str:
    answer = box.get(path)
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    return answer.data.decode()


def labels(html: str) -> list[str]:
    """Return what the chips say."""
    return re.findall(r'class="chip [^>]*>([^<]+)<', html)


def listed(html: str) -> list[int]:
    return [int(found) for found in re.findall(r'href="/messages/(\d+)"', html)]


def test_an_empty_outbox_says_how_to_fill_it(box: Box) -> None:
    html = page(box, "/")
    assert "Nothing yet." in html
    assert 'href="/recipients"' in html


def test_messages_are_listed_newest_first_with_their_state(box: Box, receiver: Receiver) -> None:
    box.send(mail("ada@example.com"))
    box.send(mail("bounce@example.com", subject="Contest", reference="ref-2"))
    receiver.wait_for("ref-1", "processed", "delivered")
    receiver.wait_for("ref-2", "processed", "bounce")
    html = page(box, "/")
    assert listed(html) == [2, 1]
    assert labels(html) == ["processed", "bounce", "processed", "delivered"]
    for words in ("ada@example.com", "Your order has shipped", "Hello Ada", "Contest"):
        assert words in html


def test_a_refused_request_is_listed_with_its_reason(box: Box) -> None:
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
def test_the_list_can_be_searched_and_narrowed(box: Box, query: str, ids: list[int]) -> None:
    box.send(mail("ada@example.com"))
    box.send(mail("bob@example.com", reference="ref-2"))
    box.send(mail("invalid+ada@example.com", subject="New sale"))
    assert listed(page(box, f"/{query}")) == ids


def test_a_long_list_goes_on_a_second_page(box: Box) -> None:
    for _ in range(55):
        box.send(mail("no-events@example.com"))
    first = page(box, "/?q=no-events")
    assert listed(first) == list(range(55, 5, -1))
    assert 'href="/?before=6&amp;show=all&amp;q=no-events"' in first
    assert listed(page(box, "/?before=6&show=all&q=no-events")) == [5, 4, 3, 2, 1]


def test_a_message_has_its_html_text_request_and_events(box: Box, receiver: Receiver) -> None:
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


def test_a_mail_without_html_shows_its_text(box: Box) -> None:
    box.send(mail(content=[{"type": "text/plain", "value": "Only text"}]))
    html = page(box, "/messages/1?view=html")
    assert "Only text" in html
    assert "<iframe" not in html


def test_a_message_without_an_answer_says_so(box: Box) -> None:
    box.control("PUT", "/behaviours/*", {"outcome": "reset", "times": 1})
    with pytest.raises(Exception, match="Connection aborted"):
        box.send(mail("no-events@example.com"))
    assert labels(page(box, "/"))[0] == "reset"


def test_the_frame_may_run_nothing_and_load_nothing(box: Box) -> None:
    box.send(mail())
    answer = box.get("/messages/1/html")
    policy = answer.headers["Content-Security-Policy"]
    assert answer.data == b"<p>Hello Ada</p>"
    assert policy.startswith("sandbox; default-src 'none';")
    assert "img-src data:;" in policy
    with_images = box.get("/messages/1/html?images").headers["Content-Security-Policy"]
    assert "img-src data: http: https:;" in with_images
    assert "script-src" not in with_images


@pytest.mark.parametrize("path", ["/", "/messages/1", "/messages/1?view=request", "/recipients"])
def test_pages_allow_only_their_own_script_and_style(box: Box, path: str) -> None:
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


def test_hostile_mail_is_escaped_everywhere(box: Box, receiver: Receiver) -> None:
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
    paths += [f"/messages/{one}?view={view}" for one in (1, 2, 3) for view in ("text", "request")]
    for path in paths:
        html = page(box, path)
        assert "<script>alert" not in html
        assert "<img src=x" not in html
        assert "49" not in re.sub(r"\d\d:\d\d:\d\d\S*|\d{10}", "", html.partition("<main")[0])
    assert "{{ 7 | times: 7 }}" in page(box, "/messages/1?view=text")


def test_an_unchanged_page_is_not_sent_again(box: Box, receiver: Receiver) -> None:
    box.send(mail("dropped@example.com"))
    for number, path in enumerate(("/", "/messages/1"), start=1):
        until(lambda n=number: box.control("GET", "/counters")["webhooks"]["sent"] == n)
        etag = box.get(path).headers["ETag"]
        assert box.get(path, **{"If-None-Match": etag}).status == 304
        box.control("POST", "/events", {"reference": "ref-1", "kind": "open"})
        until(lambda p=path, e=etag: box.get(p, **{"If-None-Match": e}).status == 200)


def test_webhooks_that_do_not_get_through_are_said_on_the_page(
    box: Box, receiver: Receiver
) -> None:
    receiver.answers = [403, 403]
    box.send(mail("dropped@example.com"))
    until(lambda: "Webhooks do not get through." in page(box, "/"))
    receiver.wait_for("ref-1", "dropped")
    until(lambda: "Webhooks do not get through." not in page(box, "/"))


def test_every_magic_recipient_is_on_the_page(box: Box) -> None:
    html = page(box, "/recipients")
    for name in ("bounce@", "server_error@", "timeout-lost@"):
        assert f"<code>{name}</code>" in html


@pytest.mark.parametrize(
    "path",
    ["/messages/1", "/messages/1/html", "/messages/999999999999999999", "/static/x", "/nothing"],
)
def test_what_is_not_there_says_so(box: Box, path: str) -> None:
    answer = box.get(path)
    assert (answer.status, b"Not here" in answer.data) == (404, True)


def test_a_refused_mail_is_never_shown_as_html(box: Box) -> None:
    box.send(mail("invalid@example.com"))
    assert box.get("/messages/1/html").status == 404


@pytest.mark.parametrize(("name", "kind"), STATIC.items())
def test_the_style_and_the_script_need_nothing_from_elsewhere(
    box: Box, name: str, kind: str
) -> None:
    answer = box.get(f"/static/{name}")
    assert (answer.status, answer.headers["Content-Type"]) == (200, f"{kind}; charset=utf-8")
    assert re.findall(rb"https?://|@import|url\(", answer.data) == []
