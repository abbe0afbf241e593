"""The outbox shows a mail as its recipient gets it: their own words, files and headers."""

import base64
import re
from typing import Any

import pytest

from domain.states import Category
from providers.contract import Message, SendRequest
from tests.support.clients.sandbox import Box, mail
from tests.support.waiting import LIMIT

HOSTILE = "<script>alert(1)</script>"
PEOPLE = ("ada@example.com", "bob@example.com", "eve@example.com")


@pytest.fixture
def box(shared_box: Box) -> Box:
    return shared_box


def link(address: str) -> str:
    return f"https://notify.example.com/u/{address.partition('@')[0]}-token"


def campaign(address: str) -> SendRequest:
    """Return a marketing mail to one of many."""
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


def page(box: Box, query: str = "", part: str = "") -> str:
    (one,) = box.requests()
    answer = box.get(f"/messages/{one['id']}{part}{query}")
    assert answer.status == 200
    return answer.data.decode()


def send(box: Box, **changes: Any) -> None:
    answer = box.send(mail(**changes))
    assert answer.status == 202, answer.data


def personal(**fields: Any) -> list[dict[str, Any]]:
    return [{"to": [{"email": "ada@example.com"}], **fields}]


@pytest.mark.parametrize(("number", "address"), [*enumerate(PEOPLE)])
def test_each_of_many_is_shown_the_link_they_got(box: Box, number: int, address: str) -> None:
    box.account().send_many([campaign(one) for one in PEOPLE], timeout=LIMIT)
    query = f"?to={number}"
    for shown in (page(box, query, "/html"), page(box, f"{query}&view=text")):
        assert link(address) in shown
        assert not [one for one in PEOPLE if one != address and link(one) in shown]
        assert re.findall(r"-[0-9a-f]{16}-", shown.partition("<aside")[0]) == []
    assert f"&lt;{link(address)}&gt;" in page(box, query)
    frame = f"/html?to={number}" if number else "/html"
    assert f'/messages/1{frame}"' in re.sub(r"/messages/\d+", "/messages/1", page(box, query))


def test_the_page_leads_to_what_each_of_them_sees(box: Box) -> None:
    box.account().send_many([campaign(one) for one in PEOPLE], timeout=LIMIT)
    html = page(box, "?to=1&view=text")
    for number, address in enumerate(PEOPLE):
        current = ' aria-current="true"' if number == 1 else ""
        assert f'<a href="?view=text&amp;to={number}"{current}>{address}</a>' in html
    assert 'href="?view=html&amp;to=1"' in html


@pytest.mark.parametrize("query", ["?to=3", "?to=-1", "?to=x", "?to=", ""])
def test_whoever_is_not_there_is_the_first(box: Box, query: str) -> None:
    box.account().send_many([campaign(one) for one in PEOPLE], timeout=LIMIT)
    assert link(PEOPLE[0]) in page(box, query, "/html")


def test_the_headers_that_a_mail_program_acts_on_are_shown(box: Box) -> None:
    box.account().send(campaign("ada@example.com"), timeout=LIMIT)
    html = page(box)
    assert "<dt>List-Unsubscribe</dt>" in html
    assert f"<code>&lt;{link('ada@example.com')}&gt;</code>" in html
    assert "<code>List-Unsubscribe=One-Click</code>" in html


def test_so_is_where_an_answer_goes(box: Box) -> None:
    send(box, reply_to={"email": "help@example.com", "name": "Help"})
    assert "<dt>Reply-To</dt><dd><code>Help &lt;help@example.com&gt;</code></dd>" in page(box)


def test_a_recipients_own_headers_go_before_those_of_all(box: Box) -> None:
    own = personal(headers={"X-Kind": "own"})
    send(box, headers={"X-Kind": "shared", "X-Other": "both"}, personalizations=own)
    html = page(box)
    assert "<code>own</code>" in html
    assert "<code>shared</code>" not in html
    assert "<code>both</code>" in html


def attachment(name: str, content: bytes, **fields: Any) -> dict[str, str]:
    return {"filename": name, "content": base64.b64encode(content).decode(), **fields}


def test_attachments_are_shown_with_their_size(box: Box) -> None:
    files = [
        attachment("invoice.pdf", b"x" * 3_000, type="application/pdf", disposition="attachment"),
        attachment("one.txt", b"x"),
        attachment("logo.png", b"x" * 2_621_440, type="image/png", disposition="inline"),
    ]
    send(box, attachments=files)
    html = re.sub(r"\s+", " ", page(box))
    assert "<strong>invoice.pdf</strong> <small>application/pdf, 2.9 KB</small>" in html
    assert "<strong>one.txt</strong> <small>1 byte</small>" in html
    assert "<strong>logo.png</strong> <small>image/png, 2.5 MB</small>" in html
    assert 'class="files"' not in page(box, "?view=request")


def test_a_mail_without_attachments_has_no_list_of_them(box: Box) -> None:
    send(box)
    assert 'class="files"' not in page(box)


def test_what_is_put_in_is_put_in_once_and_the_longest_first(box: Box) -> None:
    own = personal(substitutions={"-a-": "-ab-", "-ab-": "done", "%x%": "$&\\1"}, subject="S -a-")
    send(
        box,
        content=[{"type": "text/plain", "value": "-ab- -a- %x%"}],
        personalizations=own,
        reply_to={"email": "help@example.com", "name": "-ab-"},
    )
    (found,) = box.control("GET", "/messages")["results"]
    assert found["text"] == "done -ab- $&\\1"
    assert found["subject"] == "S -ab-"
    assert found["headers"] == {"Reply-To": "done <help@example.com>"}


def test_the_control_api_shows_what_the_recipient_asked_for_sees(box: Box) -> None:
    box.account().send_many([campaign(one) for one in PEOPLE], timeout=LIMIT)
    for address in PEOPLE:
        (found,) = box.control("GET", f"/messages?recipient={address.upper()}")["results"]
        assert link(address) in found["text"]
        assert link(address) in found["html"]
        assert found["headers"]["List-Unsubscribe"] == f"<{link(address)}>"
        assert found["attachments"] == []


def test_what_is_hostile_in_it_is_escaped(box: Box) -> None:
    send(
        box,
        attachments=[attachment(HOSTILE, b"x", type=f"text/{HOSTILE}")],
        personalizations=personal(headers={"X-Odd": HOSTILE}, substitutions={"Hello": HOSTILE}),
    )
    for query in ("", "?view=text", "?view=request"):
        assert HOSTILE not in page(box, query)
