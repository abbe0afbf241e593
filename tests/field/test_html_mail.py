"""The HTML of a mail, as users of other services and of CSS inliners reported it."""

import re
from pathlib import Path

import pytest

from domain.channels import Channel
from domain.content import Content, Recipient
from domain.links import has_link
from notifications.content import inlining, rendering
from notifications.content.linting import lint_template
from notifications.content.templates import DEFAULT_LANGUAGE, Part
from providers.contract import Message
from tests.support.factories.notifications import write_template
from tests.support.tables import each_case

NBSP = "\u00a0"
PLAIN_PARAGRAPH = re.compile(r"<p style=[^>]*>(.*?)</p>", re.DOTALL)


def mail(
    body: str, *, locale: str | None = None, subject: str = "s", deep_link: str | None = None
) -> Message:
    return rendering.render_message(
        channel=Channel.EMAIL,
        content=Content(subject=subject, body=body, deep_link=deep_link),
        data={},
        recipient=Recipient(locale=locale),
    )


def templated(templates: Path, html: str, *, language: str = "") -> str:
    name = f"t{len([*templates.iterdir()])}"
    if language:
        write_template(templates, name, subject="s", body="b")
    write_template(templates, name, language=language, subject="s", body="b", email_html=html)
    message = rendering.render_message(
        channel=Channel.EMAIL,
        content=Content(subject="s", body="b", template_id=name, template_version=0),
        data={"u": "https://example.com/"},
        recipient=Recipient(locale=language or None),
    )
    assert message.html is not None
    return message.html


def faults(html: str) -> list[tuple[str, int | None, str]]:
    parts = {"default": {"subject": "S", "body": "B", "email_html": html}}
    found = lint_template(
        name="linted", parts=parts, example_data={"u": "x"}, sensitive=frozenset({"pin"})
    )
    return [(fault.code, fault.line, fault.reason) for fault in found]


CONDITIONS = [
    '<![if !mso]><a href="{{ u }}">All</a><![endif]><!--[if mso]><v:x href="{{ u }}"/><![endif]-->',
    "<![if gte mso 9]><p>x</p><![endif]>",
    "<table><![if !mso]><tr><td>x</td></tr><![endif]></table>",
    "<!--[if !mso]><!--><p>x</p><!--<![endif]-->",
    "<!--[if (gte mso 9)|(IE)]><table><tr><td><![endif]-->x<!--[if mso]></td></table><![endif]-->",
]


@pytest.mark.parametrize("html", CONDITIONS)
def test_conditions_of_outlook_are_kept(templates: Path, html: str) -> None:
    """https://github.com/jamietre/CsQuery/issues/190, https://github.com/danschultzer/premailex/issues/36"""
    assert faults(html) == []
    shown = templated(templates, html)
    for mark in re.findall(r"<!--\[if[^>]*>|<!\[(?:if[^\]]*|endif)\](?:--)?>", html):
        assert shown.count(mark) >= html.count(mark)


@each_case("name", ["tr", "td", "th", "tbody", "caption", "col"])
def test_part_of_a_table_without_one_is_refused(name: str) -> None:
    assert faults(f"<p>x</p>\n<{name}>x</{name}>") == [
        ("misplaced", 2, f"<{name}> outside of a table is lost: put a <table> around it.")
    ]
    assert faults("<table>{% if u %}<tr><td>x</td></tr>{% endif %}</table>") == []


SHEET = (
    "<style>@media only screen and (max-width:480px){.wide{width:100%!important}} "
    ".x{color:red} .x:hover{color:blue} @font-face{font-family:F;src:url(https://example.com/f)} "
    ".x::before{content:'-'} @media (prefers-color-scheme:dark){.x{color:white}}</style>"
)


def test_rules_that_cannot_be_inlined_are_kept_in_the_head(templates: Path) -> None:
    """https://github.com/foundation/foundation-emails/issues/499: :hover and @font-face were lost.

    https://github.com/jonkemp/inline-css/issues/31, https://github.com/Automattic/juice/issues/132
    """
    html = templated(templates, f'{SHEET}<p class="x">a</p>')
    head, _, body = html.partition("</head>")
    for rule in ("max-width:480px", ".x:hover", "@font-face", ".x::before", "scheme:dark"):
        assert rule in head
    assert "<style" not in body
    assert re.search(r'<p class="x" style="[^"]*color: red', body)
    assert ".x{color:red}" not in head


def test_style_sheet_for_print_is_not_inlined(templates: Path) -> None:
    """https://github.com/tijsverkoyen/CssToInlineStyles/pull/23: other media were inlined."""
    sheet = '<style media="print">.x{display:none}</style><style media="screen">.x{top:0}</style>'
    html = templated(templates, f'{sheet}<p class="x">a</p>')
    assert 'media="print"' in html
    (style,) = re.findall(r'<p class="x" style="([^"]*)"', html)
    assert "display" not in style
    assert "top: 0" in style


@each_case(
    "locale, text, is_turned",
    [
        ("ar", "مرحبا بالعالم. رقم 123.", True),
        ("he-IL", "שלום", True),
        ("iw", "1. שלום", True),
        (None, "سلام دنیا", True),
        ("ar", "Hello", False),
        ("en", "שלום", True),
        ("en", "Hello שלום", False),
        ("pt", "Olá", False),
        ("ar", "123", True),
        ("pa", "1", False),
    ],
)
def test_mail_has_the_direction_of_its_text(locale: str, text: str, is_turned: bool) -> None:
    """https://github.com/revivek/oy/issues/53: Gmail drops the attributes of html.

    https://github.com/thunderbird/thunderbird-android/issues/2506
    """
    html = mail(text, locale=locale).html
    assert html is not None
    if is_turned:
        assert re.search(r'<html [^>]*dir="rtl"', html)
        assert re.search(r'<table [^>]*class="page"[^>]*dir="rtl"', html)
        assert "text-align: left" not in html
        assert 'align="left"' not in html
    else:
        assert "dir=" not in html
        assert "text-align: left" in html


def test_template_in_a_language_from_right_to_left_is_turned(templates: Path) -> None:
    html = '<p class="said">x</p><ul><li>1</li></ul>'
    turned = templated(templates, html, language="ar")
    assert 'dir="rtl"' in turned
    assert "border-right: 4px" in turned
    assert "padding: 36px 40px;background-color: #ffffff" in turned
    assert "padding: 0 24px 0 0" in turned
    assert "أُرسلت هذه الرسالة من" in turned
    assert "border-left: 4px" in templated(templates, html)


@each_case(
    "line, shown",
    [
        ("  /dev/sda1    93%", f"{NBSP} /dev/sda1{NBSP * 3} 93%"),
        ("\tat com.example.Foo", f"{NBSP * 3} at com.example.Foo"),
        ("One.  Two. Three.", f"One.{NBSP} Two. Three."),
        (" - item", f"{NBSP}- item"),
        ("a\tb", f"a{NBSP * 2} b"),
        ("pkill -f script.py", "pkill -f script.py"),
        ("&  <", f"&amp;{NBSP} &lt;"),
    ],
)
def test_columns_stay_columns(line: str, shown: str) -> None:
    """https://github.com/nextcloud/mail/issues/10914; single blanks can be copied into a shell.

    https://github.com/svaningelgem/logprise/pull/134, https://github.com/truenas/middleware/pull/17028
    """
    message = mail(f"Disk usage:\n{line}\nend")
    assert message.html is not None
    (paragraph,) = PLAIN_PARAGRAPH.findall(message.html)
    assert paragraph == f"Disk usage:<br>{shown}<br>end"
    assert line in message.text


LINK = "https://example.com/orders/1"


@each_case(
    "text, has",
    [
        (f"see {LINK}2345", False),
        (f"see {LINK}/items", False),
        (f"see {LINK}?a=1", False),
        (f"{LINK}.", True),
        (f"({LINK})", True),
        (f"<{LINK}>", True),
        (f"at {LINK}, then", True),
        (f"https://proxy.example/?u={LINK}", False),
        (f"{LINK}.html", False),
        (f"{LINK}#a", False),
        (f"{LINK}2 and {LINK}", True),
        (f"Open:{LINK}\n", True),
        (f"«{LINK}»", True),
    ],
)
def test_link_counts_only_as_a_whole(text: str, has: bool) -> None:
    assert has_link(text, LINK) is has
    message = mail(text, deep_link=LINK)
    assert message.text.endswith(f"\n\nOpen: {LINK}") is not has


def test_home_page_is_not_any_of_its_pages() -> None:
    message = mail("See https://example.com/help", deep_link="https://example.com/")
    assert message.text.endswith("Open: https://example.com/")


DOCUMENT = """<!doctype html>
<html lang="en"><head><title>T</title>
<style>body{background:#eee}</style></head>
<body style="background:#eee"><p>Hi</p></body></html>"""


@each_case(
    "html, line, reason",
    [
        # What MJML exports. https://github.com/mjmlio/mjml/issues/723
        (DOCUMENT, 2, "<html> is lost"),
        ("<p>a</p>\n<body bgcolor='red'>b", 2, "<body> is lost"),
        ("<HEAD></HEAD>a", 1, "<head>"),
        ('a\n<link href="https://x.example/c.css" rel="stylesheet">', 2, "<link> is lost"),
        ("<link rel='preload stylesheet' href=c.css>a", 1, "<link> is lost"),
        # Moved: https://github.com/handlebars-lang/handlebars.js/issues/604
        ("<table>\nlost?<tr><td>a</td></tr></table>", 2, "Text between"),
        ("<table>\n{{ name }}<tr><td>a</td></tr></table>", 2, "Text between"),
        ("<table><tr>\nx<td>a</td></tr></table>", 2, "Text between"),
        ("<table><tr><td>a</td>\n&nbsp;</tr></table>", 2, "Text between"),
        ("<table><tr><td>a</td></tr>\n{% if name %}b{% endif %}</table>", 2, "Text between"),
        ("<table>\n<p>x</p><tr><td>a</td></tr></table>", 2, "<p> between"),
        ("<table><tr><td><table>\n<div>x</div></table></td></tr></table>", 2, "<div> between"),
        ("<div>\n<tr><td>a</td></tr></div>", 2, "<tr> outside of a table"),
    ],
)
def test_html_that_would_be_lost_or_moved_is_refused(html: str, line: int, reason: str) -> None:
    faults = lint_template(
        name="t",
        parts={DEFAULT_LANGUAGE: {Part.SUBJECT: "S", Part.BODY: "B", Part.EMAIL_HTML: html}},
        example_data={"name": "Ada"},
        sensitive=frozenset(),
    )
    assert [(fault.code, fault.line) for fault in faults] == [("misplaced", line)]
    assert reason in faults[0].reason


@each_case(
    "html",
    [
        "<table><caption>c</caption><colgroup><col></colgroup><tr><td>{{ name }}</td></tr></table>",
        "<table>{% for i in l %}<tr>{% if a %}<td>x<p>y</td>{% endif %}</tr>{% endfor %}</table>",
        "<table><!--[if mso]><tr><td width=9><![endif]--><tr><td>a</td></tr></table>",
        "<table><tr><td><table><tr><td>a</td></tr></table>text</td></tr></table>",
        "<table><tr><th>a\n<td>b\n<tr><td>c</table>",
        "<table><input type=hidden><tr><td>a</td></tr></table><link rel=preload href=x>",
        "<p>a {{ name }}</p><style>body{margin:0}</style><svg><title>t</title></svg>",
    ],
)
def test_html_that_stays_in_its_place_is_accepted(html: str) -> None:
    assert inlining.find_lost(html) is None


@each_case(
    "html, kept",
    [
        ("<pre>\n\n a</pre>", "<pre>\n\n a</pre>"),
        ("<pre>\na</pre>", "<pre>\na</pre>"),
        ("<pre>a\n\n</pre>", "<pre>a\n\n</pre>"),
        ("<pre>{{ x }}</pre>", "<pre>{{ x }}</pre>"),
        (
            "<pre class='c'>\n{% if x %}a{% endif %}</pre>",
            '<pre class="c">\n{% if x %}a{% endif %}</pre>',
        ),
        ("<textarea>\n\nx</textarea>", "<textarea>\n\nx</textarea>"),
    ],
)
def test_preformatted_text_keeps_its_first_line(html: str, kept: str) -> None:
    """https://github.com/syntax-tree/hast-util-to-html/pull/50"""
    assert inlining.inline_fragment(html, css="").replace("<!---->", "") == kept
