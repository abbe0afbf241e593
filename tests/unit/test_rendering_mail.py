"""Messages to mail: escaped, in their language, with what is not text."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notifications import rendering
from notifications.rendering import (
    clean_line,
    render_message,
    without_invisible,
)
from notifications.store import Content, Recipient
from notifications.types import MASK

ADA = Recipient(email="ada@example.com", name="Ada")


@pytest.fixture
def templates(tmp_path: Path, settings: Any) -> Iterator[Path]:
    """Give a test a folder of templates of its own, with the real layout in it."""
    folder = tmp_path / "templates" / "notifications"
    layout = Path(settings.BASE_DIR, "templates", "notifications", "_layout", "email.html")
    (folder / "_layout").mkdir(parents=True)
    (folder / "_layout" / "email.html").write_text(layout.read_text())
    settings.BASE_DIR = tmp_path
    rendering._find.cache_clear()
    yield folder
    rendering._find.cache_clear()


def write(folder: Path, name: str, *, subject: str = "S", body: str = "B", **parts: str) -> None:
    path = folder / name
    path.mkdir(parents=True)
    (path / "subject.txt").write_text(subject)
    (path / "body.txt").write_text(body)
    for part, text in parts.items():
        (path / f"{part}.html").write_text(text)


def html_of(content: Content, *, recipient: Recipient = ADA, **data: Any) -> str:
    html = render_message(content=content, data=data, recipient=recipient).html
    assert html is not None
    return html


# Mail.


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ('"><img src=x onerror=alert(1)>', "&#34;&gt;&lt;img src=x onerror=alert(1)&gt;"),
        ("{{ code }} {% raw %}", "{{ code }} {% raw %}"),
        ("a & b &amp; c", "a &amp; b &amp;amp; c"),
        ("</p></body>", "&lt;/p&gt;&lt;/body&gt;"),
    ],
)
def test_the_callers_words_are_escaped_in_mail(text: str, shown: str) -> None:
    html = html_of(Content(subject=text, body=f"{text}\n\n{text}"))
    assert f"<title>{shown}</title>" in html
    assert html.count(f"<p>{shown}</p>") == 2
    assert text == shown or text not in html


@pytest.mark.parametrize("field", ["image_url", "deep_link"])
def test_a_link_cannot_break_out_of_its_place(field: str) -> None:
    link: dict[str, Any] = {field: 'https://example.com/"onload="alert(1)'}
    html = html_of(Content(subject="s", body="b", **link))
    assert '"onload="' not in html
    assert "https://example.com/" in html


def test_paragraphs_and_lines_stay_what_they_are_in_mail() -> None:
    html = html_of(Content(subject="s", body="one\ntwo\n\nthree"))
    assert "<p>one<br>two</p>\n<p>three</p>" in html


def test_a_deep_link_into_an_app_is_not_shown_in_mail() -> None:
    assert "app://" not in html_of(Content(subject="s", body="b", deep_link="app://orders/1"))


def test_a_template_may_have_html_of_its_own(templates: Path) -> None:
    write(templates, "t", body="plain", email="<h2>{{ a }}</h2>")
    html = html_of(Content(subject="s", body="plain", template_id="t"), a="<b>")
    assert "<h2>&lt;b&gt;</h2>" in html
    assert "<p>plain</p>" not in html


def test_mail_names_its_language(templates: Path) -> None:
    html = html_of(Content(subject="s", body="b"), recipient=Recipient(locale="pt-BR"))
    assert '<html lang="pt-BR">' in html
    assert '<html lang="en">' in html_of(Content(subject="s", body="b"))


def test_a_locale_that_is_none_does_not_get_into_the_mail() -> None:
    html = html_of(Content(subject="s", body="b"), recipient=Recipient(locale='"><script>'))
    assert "<script" not in html


def test_what_was_rendered_when_it_was_accepted_is_sent() -> None:
    content = Content(subject="then", body="as it was", template_id="payment_confirmed")
    message = render_message(content=content, data={}, recipient=ADA)
    assert (message.subject, message.text) == ("then", "as it was")


def test_what_is_masked_is_rendered_anew_when_it_is_sent() -> None:
    content = Content(
        subject=f"{MASK} is your login code", body=MASK, template_id="mfa_code", is_masked=True
    )
    message = render_message(content=content, data={"code": "493817"}, recipient=ADA)
    assert message.subject == "493817 is your login code"
    assert "493817" in message.text
    assert message.html is not None
    assert "493817" in message.html
    assert MASK not in message.html


def test_a_message_carries_what_is_not_text_too() -> None:
    content = Content(
        subject="s",
        body="b",
        image_url="https://cdn.example.com/i.png",
        deep_link="app://orders/1",
        payload={"orderId": "1"},
    )
    message = render_message(content=content, data={}, recipient=ADA)
    assert message.image_url == "https://cdn.example.com/i.png"
    assert message.deep_link == "app://orders/1"
    assert message.payload == {"orderId": "1"}


# Characters nobody sees.


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("  two \n words\t\r\n", "two words"),
        ("\u202eHello\u202c", "Hello"),
        ("\u2066Hello\u2069", "Hello"),
        ("\u200eHello\u200f\u061c", "Hello"),
        ("He\u200bl\u2060lo\ufeff", "Hello"),
        ("\U0001f469\u200d\U0001f467", "\U0001f469\u200d\U0001f467"),
        ("\u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",) * 2,
        ("e\u0301",) * 2,
        ("", ""),
    ],
)
def test_a_line_loses_what_nobody_sees_and_keeps_what_letters_are_made_of(
    text: str, clean: str
) -> None:
    assert clean_line(text) == clean


@given(st.text(max_size=60))
def test_cleaning_twice_is_cleaning_once(text: str) -> None:
    line = clean_line(text)
    assert "\n" not in line
    assert "\r" not in line
    assert without_invisible(line) == line
