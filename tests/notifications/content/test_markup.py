"""The HTML tokenizer and its limits."""

import pytest

from notifications.content import markup
from notifications.content.markup import MAX_NESTING, MAX_TAGS
from tests.support.tables import each_case

MANY = MAX_NESTING + 50


@each_case(
    "html, found",
    [
        ("a <b>c</b> d", ["<b>", "</b>"]),
        ("1 < 2 <3 </ >", ["</ >"]),
        ("<a href=\"x>y\" b='>' c=d/e>", ["<a href=\"x>y\" b='>' c=d/e>"]),
        ('<a b"c>d">', ['<a b"c>']),
        ("<a = b><br/>", ["<a = b>", "<br/>"]),
        ("<a\nb\t=\f'c'\r/>", ["<a\nb\t=\f'c'\r/>"]),
        ("<!-- <b> -->c", ["<!-- <b> -->"]),
        ("<!--><b><!---><i>", ["<!-->", "<b>", "<!--->", "<i>"]),
        ("<!-- a --!><b>", ["<!-- a --!>", "<b>"]),
        ("<!doctype html><?x y><![CDATA[ a ]]>", ["<!doctype html>", "<?x y>", "<![CDATA[ a ]]>"]),
        ("<title><b></title>", ["<title><b>", "</title>"]),
        ("<STYLE>a</styles></Style >", ["<STYLE>a</styles>", "</Style >"]),
        ("<textarea></textarea", ["<textarea></textarea"]),
        ("<a b='c", ["<a b='c"]),
        ("x<!-- y", ["<!-- y"]),
        ("<title>x", ["<title>x"]),
    ],
)
def test_tags_follow_the_html_standard(html: str, found: list[str]) -> None:
    spans = [html[token.start : token.end] for token in markup.tokenize(html)]
    assert spans == found


@each_case(
    "html",
    [
        "<p>x</p>" * MANY,
        "<p>x" * (MANY // 2) + "<br><img src='x'><hr/>" * MANY,
        "<ul><li>a<li>b</ul><dl><dt>a<dd>b</dl>" * MANY,
        "<table><thead><tr><th>a<tbody><tr><td>b<td>c</table>" * MANY,
        "<div><p>a</div>" * MANY,
        "<p><b><i>x</i></b></p>" * MANY,
        "<!--[if mso]><table><tr><td><![endif]--><p>x</p><!--[if mso]></table><![endif]-->" * MANY,
        "<DIV>x</div >" * MANY,
        "<div>" * MAX_NESTING + "</div>" * MAX_NESTING,
        "x" * 60_000,
    ],
)
def test_usual_email_html_is_within_the_limits(html: str) -> None:
    html = html.replace("<p>x" * (MANY // 2), "<div><p>x</div>" * (MANY // 2))
    assert markup.find_excess(html) is None


@pytest.mark.parametrize(
    ("html", "index"),
    [
        ("<div>" * MANY, 5 * MAX_NESTING),
        ("<p>" + "<div>" * MANY + "</div>" * MANY, 3 + 5 * (MAX_NESTING - 1)),
        ("<td>" * MANY, 4 * MAX_NESTING),
        ("<x-y>" * MANY, 5 * MAX_NESTING),
    ],
)
def test_first_element_that_is_too_deep_is_reported(html: str, index: int) -> None:
    excess = markup.find_excess(html)
    assert excess is not None
    assert "200 levels" in excess.reason
    assert excess.index == index


@each_case(
    "piece",
    [
        "<div><table><tr><td></div>",
        "<p><b></p>",
        "<b><p></b>",
        "<div><!-- </div> -->",
        "<div></div<x>",
        "<div><title></div></title>",
        '<div><a b="</div>">c</a>',
        "<svg><g></g></svg>",
        "<div><script><!--<script></script></div></script>",
    ],
)
def test_ignored_end_tag_closes_nothing(piece: str) -> None:
    assert markup.find_excess(piece * MANY) is not None


def test_number_of_tags_is_limited() -> None:
    assert markup.find_excess("<br>" * MAX_TAGS) is None
    excess = markup.find_excess("<br>" * (MAX_TAGS + 1))
    assert excess is not None
    assert excess.index == 4 * MAX_TAGS


def test_style_rules_are_limited_by_element_count() -> None:
    sheet = "<style>" + ".a { color: red; }" * 200 + "</style>"
    assert markup.find_excess(sheet + "<p>x</p>" * 50) is None
    assert markup.find_excess(sheet + "<p>x</p>" * 500) is not None


def test_unclosed_formatting_is_limited() -> None:
    assert markup.find_excess("<div><b>" * 20 + "<p>x</p>" * 500) is None
    assert markup.find_excess("<div><b>" * 60 + "<p>x</p>" * 500) is not None
