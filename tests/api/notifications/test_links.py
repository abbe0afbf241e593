"""Links in what is sent: https to the public Internet, and into the app's own scheme."""

import pytest

from tests.support.clients.api import App, pointers

REFUSED = [
    *("ftp://example.com/x", "javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x"),
    *("file:///etc/passwd", "https://ada:pw@example.com/", "https://ada@example.com/"),
    *("https://example.com:99999/", "https://example.com:0/", "https://", "https://exa mple.com/"),
    *("https://127.0.0.1/", "https://localhost/", "https://[::1]/", "https://0.0.0.0/"),
    *("https://169.254.169.254/latest/meta-data", "https://[fe80::1]/", "https://10.0.0.1/"),
    *("https://172.16.0.1/", "https://192.168.1.1/", "https://[fd00::1]/", "https://100.64.0.1/"),
    *("https://2130706433/", "https://0x7f000001/", "https://0x7f.1/", "https://017700000001/"),
    *("https://[::ffff:127.0.0.1]/", "https://[::ffff:a00:1]/", "https://127.1/"),
    *("https://metadata.google.internal/", "https://METADATA.google.INTERNAL./x"),
    *(
        "https://x\u200b.internal/",
        "https://127\u30020\u30020\u30021/",
        "https://a.example\r\nX: y",
    ),
]


@pytest.mark.parametrize("field", ["image_url", "deep_link"])
def test_a_link_that_leads_elsewhere_than_to_the_public_internet_is_refused(
    app: App, field: str
) -> None:
    for url in REFUSED:
        answer = app.notify(content={"body": "Hello", field: url})
        problems = pointers(answer)
        assert (answer.status_code, problems) == (422, {f"/content/{field}": "invalid_url"}), url
        assert url.encode() not in answer.content, "no value is repeated"


def test_an_answer_goes_to_one_address(app: App) -> None:
    for address in ("a@b.c\r\nBcc: x@example.com", "Ada <ada@example.com>", "a@localhost", ""):
        answer = app.notify(content={"body": "Hello", "reply_to": address})
        assert pointers(answer) == {"/content/reply_to": "invalid_email"}, address


@pytest.mark.parametrize(
    "link", ["https://example.com/orders/5?x=1#top", "app://orders/5", "mailto:ada@example.com"]
)
def test_a_link_into_an_app_or_to_a_page_comes_back_as_it_is(app: App, link: str) -> None:
    answer = app.notify(content={"body": "Hello", "deep_link": link})
    assert answer.json()["content"]["deep_link"] == link
