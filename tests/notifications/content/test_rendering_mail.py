"""Rendering of email: HTML, escaping, language, and layout."""

import re
from pathlib import Path
from typing import Any

from domain.channels import Channel
from domain.content import Content, Recipient
from notifications.content import rendering
from providers.contract import Message
from tests.support.factories.notifications import write_template as write
from tests.support.tables import each_case

ADA = Recipient(email="ada@example.com", name="Ada")


def render_message(
    *, content: Content, data: dict[str, Any], recipient: Recipient, **options: Any
) -> Message:
    return rendering.render_message(
        channel=Channel.EMAIL, content=content, data=data, recipient=recipient, **options
    )


def html_of(content: Content, *, recipient: Recipient = ADA, **data: Any) -> str:
    html = render_message(content=content, data=data, recipient=recipient).html
    assert html is not None
    return html


@each_case(
    "text, shown",
    [
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ('"><img src=x onerror=alert(1)>', "&#34;&gt;&lt;img src=x onerror=alert(1)&gt;"),
        ("{{ code }} {% raw %}", "{{ code }} {% raw %}"),
        ("a & b &amp; c", "a &amp; b &amp;amp; c"),
        ("</p></body>", "&lt;/p&gt;&lt;/body&gt;"),
    ],
)
def test_inline_content_is_escaped_in_html(text: str, shown: str) -> None:
    html = html_of(Content(subject=text, body=f"{text}\n\n{text}"))
    assert f"<title>{shown}</title>" in html
    assert html.count(f">{shown}</p>") == 2
    assert text == shown or text not in html


@each_case("field", ["image_url", "deep_link"])
def test_links_are_escaped_in_html(field: str) -> None:
    link: dict[str, Any] = {field: 'https://example.com/"onload="alert(1)'}
    html = html_of(Content(subject="s", body="b", **link))
    assert '"onload="' not in html
    assert "https://example.com/" in html


def test_paragraphs_and_line_breaks_are_kept_in_html() -> None:
    html = html_of(Content(subject="s", body="one\ntwo\n\nthree"))
    assert re.search(r"<p style=[^>]*>one<br>two</p>\n<p style=[^>]*>three</p>", html)


def test_deep_link_into_an_app_is_not_shown() -> None:
    assert "app://" not in html_of(Content(subject="s", body="b", deep_link="app://orders/1"))


def test_template_can_have_its_own_html(templates: Path) -> None:
    write(templates, "t", body="plain", email_html="<h2>{{ a }}</h2>")
    html = html_of(Content(subject="s", body="plain", template_id="t"), a="<b>")
    assert re.search(r"<h2 style=[^>]*>&lt;b&gt;</h2>", html)
    assert ">plain</p>" not in html


def test_html_names_its_language(templates: Path) -> None:
    html = html_of(Content(subject="s", body="b"), recipient=Recipient(locale="pt-BR"))
    assert '<html lang="pt-BR"' in html
    assert '<html lang="en"' in html_of(Content(subject="s", body="b"))


def test_invalid_locale_is_not_in_the_html() -> None:
    html = html_of(Content(subject="s", body="b"), recipient=Recipient(locale='"><script>'))
    assert "<script" not in html


def test_content_rendered_on_acceptance_is_sent() -> None:
    content = Content(subject="then", body="as it was", template_id="payment_confirmed")
    message = render_message(content=content, data={}, recipient=ADA)
    assert (message.subject, message.text) == ("then", "as it was")


def test_email_names_its_sender(settings: Any) -> None:
    settings.EMAIL_FROM = "The Shop <shop@example.com>"
    assert "This message was sent by The Shop." in html_of(Content(subject="s", body="b"))
    settings.EMAIL_FROM = "Dept of A, B, and C <shop@example.com>"
    assert "sent by Dept of A, B, and C." in html_of(Content(subject="s", body="b"))
    settings.EMAIL_FROM = "shop@example.com"
    assert "This message was sent by shop@example.com." in html_of(Content(subject="s", body="b"))


def test_email_has_an_unsubscribe_link_if_given() -> None:
    content = Content(subject="s", body="b")
    with_link = render_message(
        content=content, data={}, recipient=ADA, unsubscribe_url='https://example.com/u?t="1"&n=2'
    )
    assert 'href="https://example.com/u?t=&#34;1&#34;&amp;n=2"' in str(with_link.html)
    assert with_link.text.endswith(
        '-- \nUnsubscribe from messages like this: https://example.com/u?t="1"&n=2'
    )
    without = render_message(content=content, data={}, recipient=ADA)
    assert "Unsubscribe" not in f"{without.html}{without.text}"


def test_deep_link_is_a_button_in_html_and_an_address_in_text() -> None:
    content = Content(subject="s", body="b", deep_link="https://example.com/orders/1")
    message = render_message(content=content, data={}, recipient=ADA)
    assert re.search(
        r'<a class="button" href="https://example.com/orders/1"[^>]*>Open</a>', html_of(content)
    )
    assert message.text == "b\n\nOpen: https://example.com/orders/1"
    named = Content(
        subject="s", body="See https://example.com/1", deep_link="https://example.com/1"
    )
    assert render_message(content=named, data={}, recipient=ADA).text == named.body


def test_layout_is_in_the_language_of_the_content(templates: Path) -> None:
    write(templates, "t", body="Hello")
    content = Content(subject="s", body="b", deep_link="https://example.com/1")
    html = html_of(content, recipient=Recipient(locale="pt-BR"))
    assert "Mensagem enviada por" in html
    assert ">Abrir</a>" in html
    only_english = Content(subject="s", body="b", template_id="t")
    html = html_of(only_english, recipient=Recipient(locale="pt-BR"))
    assert "This message was sent by" in html
    assert '<html lang="en"' in html


def test_preheader_is_the_beginning_of_the_text() -> None:
    html = html_of(Content(subject="s", body="The beginning.\n\n" + "x" * 200))
    assert re.search(r'<div class="preheader"[^>]*>The beginning\. x{105}\W', html)


def test_heading_in_the_html_replaces_the_subject(templates: Path) -> None:
    write(templates, "t", email_html="<h1>Own</h1>")
    html = html_of(Content(subject="Subject", body="b", template_id="t"))
    assert html.count("<h1") == 1
    assert ">Own</h1>" in html
    assert html_of(Content(subject="Subject", body="b")).count(">Subject</h1>") == 1


def test_styles_are_inlined_except_media_queries(templates: Path) -> None:
    write(templates, "t", email_html='<p>One</p><p class="quiet">Two</p>')
    html = html_of(Content(subject="s", body="b", template_id="t"))
    assert len(re.findall(r"<p [^>]*style=\"[^\"]*margin: 0 0 16px", html)) == 2
    (style,) = re.findall(r"<style[^>]*>(.*?)</style>", html, re.DOTALL)
    assert "prefers-color-scheme: dark" in style
    assert "max-width: 480px" in style
    assert ".quiet { font-size" not in style


def test_one_page_of_text_stays_below_20_kb() -> None:
    assert len(html_of(Content(subject="s", body="word " * 500))) < 20_000
