"""Liquid's filters, as Shopify's tests state them and as users of Liquid reported them.

Facts from https://github.com/Shopify/liquid/blob/main/test/integration/standard_filter_test.rb and
https://shopify.github.io/liquid/, besides the threads that a case names.
"""

from typing import Any

import pytest

from notifications.content.engine import HTML_ENVIRONMENT, Template, TemplateError

X50 = "x" * 50
DATA: dict[str, Any] = {
    "code": "ORDER-1234",
    "parcel": "Your parcel arrived",
    "x50": X50,
    "null": None,
    "yes": True,
    "list": [1],
    "map": {"a": 1},
    "rows": [{"p": 4, "h": "a"}, {"h": "b"}, {"p": 1, "h": "c"}, {"p": None, "h": "d"}],
    "mixed": ["c", None, "D", "a"],
    "tags": "<p>a &amp; b &copy; < c</p>",
}

TRUNCATE = [
    # https://github.com/bkiers/Liqp/pull/143, https://github.com/Shopify/liquid/issues/366
    *(("{{ code | truncate: 10 }}", "ORDER-1234"), ("{{ code | truncate: 9 }}", "ORDER-...")),
    *(("{{ code | truncate: 11 }}", "ORDER-1234"), ("{{ parcel | truncate: 19 }}", DATA["parcel"])),
    *(("{{ x50 | truncate }}", X50), ("{{ x50 | append: 'x' | truncate }}", "x" * 47 + "...")),
    *(("{{ '1234567890' | truncate: 0 }}", "..."), ("{{ 'abc' | truncate: 2, '-----' }}", "-----")),
    *(("{{ 'abc' | truncate: 1 }}", "..."), ("{{ 'abc' | truncate: 1, '' }}", "a")),
    *(("{{ '1234567890' | truncate: 5, 1 }}", "12341"), ("{{ null | truncate: 5 }}", "")),
    # https://github.com/sebastienros/fluid/pull/507
    ("{{ 'one two three' | truncatewords: 3 }}", "one two three"),
    ("{{ 'one two three' | truncatewords: 2 }}", "one two..."),
    ("{{ 'one two three' | truncatewords: 2, 1 }}", "one two1"),
    ("{{ 'a  b' | truncatewords: 2 }}", "a  b"),
    ("{{ 'a  b c' | truncatewords: 2, '--' }}", "a b--"),
    ("{{ 'one two' | truncatewords: 0 }}", "one..."),
]
DATE = [
    # https://github.com/jekyll/jekyll/pull/5722, https://github.com/handlecommerce/liquex/pull/34
    *(("{{ null | date: '%d %B' }}", ""), ("{{ '' | date: '%d' }}", "")),
    *(("{{ 1.5 | date: '%d' }}", "1.5"), ("{{ yes | date: '%d' }}", "true")),
    *(("{{ list | date: '%d' }}", "1"), ("{{ 'abc' | date: '%D' }}", "abc")),
    ("{{ map | date: '%d' }}", "{'a': 1}"),
    ("{{ '99999999999999999999' | date: '%Y' }}", "99999999999999999999"),
    ("{{ '2006-07-05 10:00:00' | date: '' }}", "2006-07-05 10:00:00"),
    ("{{ '2006-07-05 10:00:00' | date: nil }}", "2006-07-05 10:00:00"),
    ("{{ '2006-07-05 10:00:00' | date: '%m/%d/%Y' }}", "07/05/2006"),
    ("{{ 'Fri Jul 16 01:00:00 2004' | date: '%m/%d/%Y' }}", "07/16/2004"),
    *(("{{ 1152098955 | date: '%m/%d/%Y' }}", "07/05/2006"),),
    *(("{{ '1152098955' | date: '%m/%d/%Y' }}", "07/05/2006"),),
    ("{{ 'Today' | date: '%Y' | size }}", "4"),
    (
        "{{ '2026-03-04T05:06:07.089Z' | date: '%-d.%-m.%y %H:%M:%S.%L %Z' }}",
        "4.3.26 05:06:07.089 UTC",
    ),
]
OTHERS = [
    # Text
    *(("{{ 'foobar' | slice: -2, 1000 }}", "ar"), ("{{ 'foobar' | slice: -7, 3 }}", "")),
    *(("{{ 'foobar' | slice: 100, 10 }}", ""), ("{{ 'foobar' | slice: '1', '3' }}", "oob")),
    *(("{{ 'foobar' | slice: 1, 0 }}", ""), ("{{ null | slice: 0 }}", "")),
    ("{{ 'foobar' | split: '' | slice: -2, 2 | join: '.' }}", "a.r"),
    *(("{{ 'a,b,,' | split: ',' | size }}", "2"), ("{{ ',,' | split: ',' | size }}", "0")),
    *(("{{ ',a' | split: ',' | size }}", "2"), ("{{ 'A1Z' | split: 1 | join: '-' }}", "A-Z")),
    *(
        ("{{ 'abc' | replace_last: 'abc', 'x' }}", "x"),
        ("{{ 'aba' | replace_last: 'a', 'c' }}", "abc"),
    ),
    *(("{{ 'aba' | remove_last: 'a' }}", "ab"), ("{{ 'aba' | remove_last: 'z' }}", "aba")),
    *(("{{ '1 1 1' | replace: 1, 2 }}", "2 2 2"), ("{{ 'a a a' | remove_first: 'a ' }}", "a a")),
    ("{{ '&lt;strong&gt;Hulk</strong>' | escape_once }}", "&lt;strong&gt;Hulk&lt;/strong&gt;"),
    ("{{ tags | escape_once }}", "&lt;p&gt;a &amp; b &copy; &lt; c&lt;/p&gt;"),
    ('{{ "<!-- foo bar \n test -->test" | strip_html }}', "test"),
    *(("{{ 'foo+1@example.com' | url_encode }}", "foo%2B1%40example.com"),),
    *(
        ("{{ 'foo%20bar' | url_decode }}", "foo bar"),
        ("{{ 'my great title' | capitalize }}", "My great title"),
    ),
    # Numbers
    *(
        ("{{ 2.5 | round }}", "3"),
        ("{{ -2.5 | round }}", "-3"),
        ("{{ 4.5612 | round: 2 }}", "4.56"),
    ),
    *(
        ("{{ 2.675 | round: 2 }}", "2.68"),
        ("{{ '4.3' | round }}", "4"),
        ("{{ 5 | round: 1 }}", "5"),
    ),
    *(
        ("{{ -5.5 | modulo: 2 }}", "0.5"),
        ("{{ 24 | modulo: 7 }}", "3"),
        ("{{ -1 | modulo: 3 }}", "2"),
    ),
    *(("{{ 0.0725 | times: 100 }}", "7.25"), ("{{ '4.3' | minus: '2' }}", "2.3")),
    *(("{{ 14 | divided_by: 3 }}", "4"), ("{{ 2.0 | divided_by: 4 }}", "0.5")),
    *(("{{ '-17.42' | abs }}", "17.42"), ("{{ 4.5 | at_least: 5 }}", "5")),
    # Lists
    ("{{ rows | sort: 'p' | map: 'h' | join }}", "c a b d"),
    ("{{ mixed | sort_natural | compact | join: ',' }}", "a,c,D"),
    ("{{ rows | where: 'p', 1 | map: 'h' | first }}", "c"),
    ("{{ rows | map: 'p' | compact | sum }}", "5"),
]


@pytest.mark.parametrize(("source", "text"), TRUNCATE + DATE + OTHERS)
def test_filter_does_what_shopify_says(source: str, text: str) -> None:
    assert Template(source).render(DATA) == text


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("{{ null | date: '%d' }}<", "<"),
        ("{{ tags | escape_once }}", "&lt;p&gt;a &amp; b &copy; &lt; c&lt;/p&gt;"),
        ("{{ tags | truncate: 4 }}", "&lt;..."),
        ("{{ map | date: '%d' }}", "{&#39;a&#39;: 1}"),
    ],
)
def test_filtered_text_is_escaped_once_in_html(source: str, shown: str) -> None:
    assert Template(source, environment=HTML_ENVIRONMENT).render(DATA) == shown


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("a\n{{ 5 | divided_by: 0 }}", r"filter or comparison 'divided_by'.*\{\{ 5 \| divided_by"),
        ("a\n{{ code | slice }}", r"'slice' can't take this value: \{\{ code \| slice \}\}"),
        ("a\n{{ code | in_zone }}", r"'in_zone'.*code"),
        ("a\n{{ list | sort: 'p' }}", r"'sort'.*list"),
        ("a\n{% if code < 5 %}{% endif %}", r"'<'.*code < 5"),
        ("a\n{% for i in (1..1001) %}x{% endfor %}", r"Over 1,000 loop iterations\."),
    ],
)
def test_failure_names_filter_and_variable_and_place(source: str, reason: str) -> None:
    """https://github.com/Shopify/liquid/pull/632: filters are generous to data."""
    with pytest.raises(TemplateError, match=reason) as error:
        Template(source).render(DATA)
    assert error.value.line == 2
    assert "line 2" in error.value.text


T = {"t": "2026-06-30T21:00:00Z", "nested": [[1, [2]], 3, None, True], "none": None, "yes": True}
REPORTED = [
    # https://github.com/harttle/liquidjs/issues/931
    ("{{ t | in_zone: 'America/Toronto' | date: '%s' }}", "1782853200"),
    ("{{ t | date: '%s %%s' }}", "1782853200 %s"),
    # https://github.com/harttle/liquidjs/pull/278, https://github.com/harttle/liquidjs/pull/685
    ("{{ t | in_zone: 'America/Toronto' | date: '%H:%M %z %Z' }}", "17:00 -0400 EDT"),
    ("{{ '1990-12-31T23:00:00+02:00' | date: '%H:%M %z' }}", "23:00 +0200"),
    ("{{ t | in_zone: 'Asia/Kolkata' }}", "2026-07-01 02:30:00"),
    # https://github.com/cobalt-org/liquid-rust/issues/269
    ("{{ '<a>' | h }}", "&lt;a&gt;"),
    # https://github.com/jg-rp/liquid/issues/41
    (
        (
            "{% for i in (1..6) limit: 2 %}a{{ i }}{% endfor %}"
            "{% for i in (1..6) limit: 2 offset: continue %}b{{ i }}{% endfor %}"
            "{% for i in (1..6) offset: continue %}c{{ i }}{% endfor %}"
        ),
        "a1a2b3b4c5c6",
    ),
    # https://github.com/harttle/liquidjs/issues/312
    (
        "{% assign a = '123' | split: '' %}{% for i in a reversed limit: 2 %}{{ i }}{% endfor %}",
        "21",
    ),
    # https://github.com/osteele/liquid/issues/79
    ("a:\n\n{%- for i in (1..2) -%}\n{{ i }},\n{%- endfor -%}\n\nb", "a:1,2,b"),
    # https://github.com/Shopify/liquid/issues/2000
    ("a\n \n{%- liquid\nassign x = 1\n-%}\nb", "ab"),
    # https://github.com/jg-rp/liquid/issues/127
    ("a{% if yes %}\n{% endif %}b", "ab"),
    # How Ruby writes null, true, and lists in lists
    *(("{{ nested }}", "123true"), ("{{ nested | join: ',' }}", "1,2,3,,true")),
    *(("{{ 'a' | append: none }}", "a"), ("{{ yes | append: '!' }}", "true!")),
    *(
        ("{{ '12 kg' | plus: 1 }}", "13"),
        ("{{ '1.5' | times: 2 }}", "3.0"),
        ("{{ 'x' | plus: 1 }}", "1"),
    ),
]


@pytest.mark.parametrize(("source", "text"), REPORTED)
def test_template_writes_what_its_author_meant(source: str, text: str) -> None:
    assert Template(source).render(T) == text


def test_list_is_escaped_in_html() -> None:
    source = "{{ a }}{{ a | join: '<br>' }}"
    html = Template(source, environment=HTML_ENVIRONMENT).render({"a": ["<b>", ["&"]]})
    assert html == "&lt;b&gt;&amp;&lt;b&gt;<br>&amp;"
