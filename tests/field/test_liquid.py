"""Liquid's filters, as Shopify's tests state them and as users of Liquid reported them.

Facts from https://github.com/Shopify/liquid/blob/main/test/integration/standard_filter_test.rb and
https://shopify.github.io/liquid/, besides the threads that a case names.
"""

from typing import Any

import pytest

from notifications.content.engine import HTML_ENVIRONMENT, Template, TemplateError
from tests.support.tables import each_case

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
    ("{{ code | truncate: 10 }}", "ORDER-1234"),
    ("{{ code | truncate: 9 }}", "ORDER-..."),
    ("{{ code | truncate: 11 }}", "ORDER-1234"),
    ("{{ parcel | truncate: 19 }}", DATA["parcel"]),
    ("{{ x50 | truncate }}", X50),
    ("{{ x50 | append: 'x' | truncate }}", "x" * 47 + "..."),
    ("{{ '1234567890' | truncate: 0 }}", "..."),
    ("{{ 'abc' | truncate: 2, '-----' }}", "-----"),
    ("{{ 'abc' | truncate: 1 }}", "..."),
    ("{{ 'abc' | truncate: 1, '' }}", "a"),
    ("{{ '1234567890' | truncate: 5, 1 }}", "12341"),
    ("{{ null | truncate: 5 }}", ""),
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
    ("{{ null | date: '%d %B' }}", ""),
    ("{{ '' | date: '%d' }}", ""),
    ("{{ 1.5 | date: '%d' }}", "1.5"),
    ("{{ yes | date: '%d' }}", "true"),
    ("{{ list | date: '%d' }}", "1"),
    ("{{ 'abc' | date: '%D' }}", "abc"),
    ("{{ map | date: '%d' }}", '{"a"=>1}'),
    ("{{ '99999999999999999999' | date: '%Y' }}", "99999999999999999999"),
    ("{{ '2006-07-05 10:00:00' | date: '' }}", "2006-07-05 10:00:00"),
    ("{{ '2006-07-05 10:00:00' | date: nil }}", "2006-07-05 10:00:00"),
    ("{{ '2006-07-05 10:00:00' | date: '%m/%d/%Y' }}", "07/05/2006"),
    ("{{ 'Fri Jul 16 01:00:00 2004' | date: '%m/%d/%Y' }}", "07/16/2004"),
    ("{{ 1152098955 | date: '%m/%d/%Y' }}", "07/05/2006"),
    ("{{ '1152098955' | date: '%m/%d/%Y' }}", "07/05/2006"),
    ("{{ 'Today' | date: '%Y' | size }}", "4"),
    (
        "{{ '2026-03-04T05:06:07.089Z' | date: '%-d.%-m.%y %H:%M:%S.%L %Z' }}",
        "4.3.26 05:06:07.089 UTC",
    ),
]
OTHERS = [
    # Text
    ("{{ 'foobar' | slice: -2, 1000 }}", "ar"),
    ("{{ 'foobar' | slice: -7, 3 }}", ""),
    ("{{ 'foobar' | slice: 100, 10 }}", ""),
    ("{{ 'foobar' | slice: '1', '3' }}", "oob"),
    ("{{ 'foobar' | slice: 1, 0 }}", ""),
    ("{{ null | slice: 0 }}", ""),
    ("{{ 'foobar' | split: '' | slice: -2, 2 | join: '.' }}", "a.r"),
    ("{{ 'a,b,,' | split: ',' | size }}", "2"),
    ("{{ ',,' | split: ',' | size }}", "0"),
    ("{{ ',a' | split: ',' | size }}", "2"),
    ("{{ 'A1Z' | split: 1 | join: '-' }}", "A-Z"),
    ("{{ 'abc' | replace_last: 'abc', 'x' }}", "x"),
    ("{{ 'aba' | replace_last: 'a', 'c' }}", "abc"),
    ("{{ 'aba' | remove_last: 'a' }}", "ab"),
    ("{{ 'aba' | remove_last: 'z' }}", "aba"),
    ("{{ '1 1 1' | replace: 1, 2 }}", "2 2 2"),
    ("{{ 'a a a' | remove_first: 'a ' }}", "a a"),
    ("{{ '&lt;strong&gt;Hulk</strong>' | escape_once }}", "&lt;strong&gt;Hulk&lt;/strong&gt;"),
    ("{{ tags | escape_once }}", "&lt;p&gt;a &amp; b &copy; &lt; c&lt;/p&gt;"),
    ('{{ "<!-- foo bar \n test -->test" | strip_html }}', "test"),
    ("{{ 'foo+1@example.com' | url_encode }}", "foo%2B1%40example.com"),
    ("{{ 'foo%20bar' | url_decode }}", "foo bar"),
    ("{{ 'my great title' | capitalize }}", "My great title"),
    # Numbers
    ("{{ 2.5 | round }}", "3"),
    ("{{ -2.5 | round }}", "-3"),
    ("{{ 4.5612 | round: 2 }}", "4.56"),
    ("{{ 2.675 | round: 2 }}", "2.68"),
    ("{{ '4.3' | round }}", "4"),
    ("{{ 5 | round: 1 }}", "5"),
    ("{{ -5.5 | modulo: 2 }}", "0.5"),
    ("{{ 24 | modulo: 7 }}", "3"),
    ("{{ -1 | modulo: 3 }}", "2"),
    ("{{ 0.0725 | times: 100 }}", "7.25"),
    ("{{ '4.3' | minus: '2' }}", "2.3"),
    ("{{ 14 | divided_by: 3 }}", "4"),
    ("{{ 2.0 | divided_by: 4 }}", "0.5"),
    ("{{ '-17.42' | abs }}", "17.42"),
    ("{{ 4.5 | at_least: 5 }}", "5"),
    # Lists
    ("{{ rows | sort: 'p' | map: 'h' | join }}", "c a b d"),
    ("{{ mixed | sort_natural | compact | join: ',' }}", "a,c,D"),
    ("{{ rows | where: 'p', 1 | map: 'h' | first }}", "c"),
    ("{{ rows | map: 'p' | compact | sum }}", "5"),
]


@each_case("source, text", TRUNCATE + DATE + OTHERS)
def test_filter_does_what_shopify_says(source: str, text: str) -> None:
    assert Template(source).render(DATA) == text


@each_case(
    "source, shown",
    [
        ("{{ null | date: '%d' }}<", "<"),
        ("{{ tags | escape_once }}", "&lt;p&gt;a &amp; b &copy; &lt; c&lt;/p&gt;"),
        ("{{ tags | truncate: 4 }}", "&lt;..."),
        ("{{ map | date: '%d' }}", "{&#34;a&#34;=&gt;1}"),
    ],
)
def test_filtered_text_is_escaped_once_in_html(source: str, shown: str) -> None:
    assert Template(source, environment=HTML_ENVIRONMENT).render(DATA) == shown


@each_case(
    "source, reason",
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
    ("{{ nested }}", "123true"),
    ("{{ nested | join: ',' }}", "1,2,3,,true"),
    ("{{ 'a' | append: none }}", "a"),
    ("{{ yes | append: '!' }}", "true!"),
    ("{{ '12 kg' | plus: 1 }}", "13"),
    ("{{ '1.5' | times: 2 }}", "3.0"),
    ("{{ 'x' | plus: 1 }}", "1"),
]


@each_case("source, text", REPORTED)
def test_template_writes_what_its_author_meant(source: str, text: str) -> None:
    assert Template(source).render(T) == text


def test_list_is_escaped_in_html() -> None:
    source = "{{ a }}{{ a | join: '<br>' }}"
    html = Template(source, environment=HTML_ENVIRONMENT).render({"a": ["<b>", ["&"]]})
    assert html == "&lt;b&gt;&amp;&lt;b&gt;<br>&amp;"


# Facts from Utils.to_number of https://github.com/Shopify/liquid and from Liquid 5.4 on Ruby 3.1.
NUMBERS = [
    # https://github.com/jg-rp/liquid/issues/49, https://github.com/jg-rp/liquid/pull/214
    ("'1.5 kg' | times: 2", "2"),
    ("'19.99 EUR' | floor", "19"),
    ("'-3.5x' | abs", "3"),
    ("'2.7x' | plus: 1", "3"),
    ("'1,234.50' | plus: 1", "2"),
    ("'1_000' | plus: 1", "1001"),
    ("'.5' | plus: 1", "1"),
    ("'3.' | plus: 1", "4"),
    ("'+5' | plus: 1", "6"),
    ("'+1.5' | times: 2", "2"),
    ("' 1.5 ' | times: 2", "3.0"),
    ("'-1.5' | times: 2", "-3.0"),
    ("'nan' | plus: 1", "1"),
    ("'inf' | plus: 1", "1"),
    ("'1e3' | plus: 1", "2"),
    ("'\u0663' | plus: 1", "1"),
    ("yes | plus: 1", "1"),
    ("'0x1A' | plus: 1", "1"),
    ("null | plus: 1", "1"),
    ("list | plus: 1", "1"),
    ("map | times: 3", "0"),
    ("10 | plus: '1.5 kg'", "11"),
    ("10 | divided_by: '4 pieces'", "2"),
    ("'' | ceil", "0"),
    ("0.3 | divided_by: 0.1", "3.0"),
    ("10 | divided_by: '1.5'", "6.666666666666667"),
    ("5 | at_least: '7.5 m'", "7"),
    ("5 | at_most: '2.5'", "2.5"),
    ("yes | round", "0"),
    # https://github.com/harttle/liquidjs/pull/873
    ("1234.5 | round: -2", "1200"),
    ("1250 | round: -2", "1300"),
    ("-1250 | round: -2", "-1300"),
    ("'1250' | round: '-2'", "1300"),
    ("1.5 | round: -1", "0"),
    ("5 | round: list", "5"),
    ("1e15 | round", "0"),
    ("big | plus: 0", "1.0e+16"),
    ("small | times: 1", "1.0e-05"),
    ("big", "1.0e+16"),
    ("small | append: ' m'", "1.0e-05 m"),
    ("half", "0.5"),
    ("rows | sum: 'p'", "5"),
    ("'1.5,2 kg,x' | split: ',' | sum", "3.5"),
]


@each_case("expression, text", NUMBERS)
def test_text_is_a_number_as_far_as_liquid_reads_it(expression: str, text: str) -> None:
    data = {**DATA, "big": 1e16, "small": 1e-5, "half": 0.5, "1e15": "x"}
    assert Template(f"{{{{ {expression} }}}}").render(data) == text


READ = [
    # With a year of four digits the day is first, as Ruby reads it; never the month.
    ("01/02/2026", "2026-02-01"),
    ("13/02/2026", "2026-02-13"),
    ("1.2.2026", "2026-02-01"),
    ("01-02-2026", "2026-02-01"),
    ("1/2/2026 10:00 PM", "2026-02-01T22"),
    ("2/2026", "2026-02-01"),
    ("2026/02/01", "2026-02-01"),
    ("2026.2.1", "2026-02-01"),
    ("20260201T101112Z", "2026-02-01T10"),
    ("Feb 1, 2026", "2026-02-01"),
    ("1st of February 2026", "2026-02-01"),
    ("12-FEB-26", "2026-02-12"),
    ("Sept 5 2026", "2026-09-05"),
    ("May 2026", "2026-05-01"),
    ("2026-Feb-12", "2026-02-12"),
    ("Sun Feb  1 10:00:00 2026", "2026-02-01T10"),
    ("Sun, 01 Feb 2026 10:00:00 +0000", "2026-02-01T10"),
    ("2026-02-01T24:00:00", "2026-02-02"),
    ("Sun Feb 01 2026 10:00:00 GMT+0100 (Central European Standard Time)", "2026-02-01T10"),
    ("2026-02-01 at 10h30", "2026-02-01T10"),
    ("2026-02-01T10:00:00,5Z", "2026-02-01T10"),
]
NO_DATES = [
    # Ruby errs, or guesses: 3.14 is the 14th, room 12b the 12th, and 01/02/26 in 2001.
    "02/13/2026",
    "01/02/26",
    "01.02.26",
    "01-02-26",
    "1/2",
    "13/2",
    "3.14",
    "-1",
    "1.5 kg",
    "room 12b",
    "ORDER-1234",
    "Tuesday",
    "mon",
    "May I help",
    "Market Street 5",
    "2026-02-30",
    "2026-13-01",
    "2026-02-01T25:00:00",
    "2026-02",
    "1 f\u00e9vrier 2026",
    "31 April 2026",
    "tomorrow",
    "10:61",
    "13 pm",
    "2026-02-01 2026-02-02",
    "Feb 1 2026 2027",
    "1.2.3.4",
    "192.168.10.12",
    "2026-02-01x",
    "v2026.02.01",
    "+351 910 000 000",
    "12:30-14:00",
    "10:00-12:00",
    "10:00 +2",
]


@each_case("given, start", READ)
def test_date_is_read_as_ruby_reads_it(given: str, start: str) -> None:
    """https://github.com/bkiers/Liqp/pull/312, https://github.com/akoumjian/datefinder/issues/120"""
    source = "{{ when | date: '%Y-%m-%dT%H:%M' }}"
    assert Template(source).render({"when": given}).startswith(start)


@each_case("given", NO_DATES)
def test_text_that_is_no_certain_date_is_unchanged(given: str) -> None:
    """https://github.com/andrewplummer/Sugar/issues/347"""
    assert Template("{{ when | date: '%d %B %Y' }}").render({"when": given}) == given


def test_clock_of_a_date_keeps_the_zone_that_it_names() -> None:
    written = {
        "2026-02-01 10:00 EST": "10:00 -0500",
        "2026-02-01 10:00 +05:30": "10:00 +0530",
        "2026-02-01 10:00 CET": "10:00 +0000",
        "10:00pm": "22:00 +0000",
        "10:00 Z": "10:00 +0000",
    }
    template = Template("{{ when | date: '%H:%M %z' }}")
    assert {given: template.render({"when": given}) for given in written} == written


DIRECTIVES = {
    # https://github.com/harttle/liquidjs/issues/177, https://github.com/dotliquid/dotliquid/pull/435
    "%Y-%m-%dT%H:%M:%S%:z": "2026-02-01T09:05:06+02:00",
    "%N %3N %6N %9N %L %1L": "089012000 089 089012 089012000 089 0",
    "%v|%+|%c": " 1-FEB-2026|Sun Feb  1 09:05:06  2026|Sun Feb  1 09:05:06 2026",
    "%Q %s": "1769929506089 1769929506",
    "%-d.%-m.%y %e %k %l %I": "1.2.26  1  9  9 09",
    "%^a %^B %#p %P %h": "SUN FEBRUARY am am Feb",
    "%_m %010Y %3d %_5S": " 2 0000002026 001     6",
    "%j %U %W %V %G %g %u %w %C": "032 05 04 05 2026 26 7 0 20",
    "%D %F %T %R %r %x %X": "02/01/26 2026-02-01 09:05:06 09:05 09:05:06 AM 02/01/26 09:05:06",
    "%z %::z %:::z %10z %_10z %-z": "+0200 +02:00:00 +02 +000000200       +200 +200",
    "%% %n%t %E %EY %Od %i %f %1000d 100%": "% \n\t %E 2026 01 %i %f %1000d 100%",
}


@each_case("pattern, text", DIRECTIVES.items())
def test_directive_writes_what_ruby_writes(pattern: str, text: str) -> None:
    when = "2026-02-01T09:05:06.089012+02:00"
    assert Template("{{ when | date: pattern }}").render({"when": when, "pattern": pattern}) == text


BLANK = ["null", "no", "empty_text", "spaces", "none_left", "no_keys", "missing"]


@each_case("name", [*BLANK, "yes", "zero", "text", "one"])
def test_null_and_false_are_blank(name: str) -> None:
    """https://github.com/jg-rp/liquid/issues/3, https://github.com/Shopify/liquid/issues/642"""
    data: dict[str, Any] = {
        "null": None,
        "no": False,
        "empty_text": "",
        "spaces": " \n",
        "none_left": [],
        "no_keys": {},
        "yes": True,
        "zero": 0,
        "text": "x",
        "one": [1],
    }
    source = (
        "{% if X == blank %}b{% endif %}{% if blank == X %}b{% endif %}"
        "{% if X != blank %}n{% endif %}{% unless X == blank %}n{% endunless %}"
        "{% case X %}{% when blank %}b{% else %}n{% endcase %}"
    )
    assert Template(source.replace("X", name)).render(data) == ("bbb" if name in BLANK else "nnn")


NOTHING = [
    ("null | sort: 'a' | size", "0"),
    ("null | uniq: 'a' | size", "0"),
    ("null | compact: 'a' | size", "0"),
    ("no | map: 'a' | size", "0"),
    ("null | sum: 'a'", "0"),
    ("no | where: 'a', 1 | size", "0"),
    ("null | find: 'a'", ""),
    ("null | join: ','", ""),
    ("rows | compact: 'p' | size", "2"),
    ("list | join: null", "1"),
    ("map", '{"a"=>1}'),
    ("code | truncate: 5, null", "ORDER"),
    ("code | truncatewords: 1, null", "ORDER-1234"),
    ("map | upcase", '{"A"=>1}'),
    ("pair | append: '!'", '["a", nil, 1.0]!'),
    ("code.first", "O"),
    ("pair | strip", '["a", nil, 1.0]'),
    ("(1..3) | append: '!'", "1..3!"),
    ("mixed_numbers | uniq | size", "3"),
    ("pair | truncate: 4", "[..."),
    ("'a<b>c</b><SCRIPT>x</SCRIPT><!-- > -->d < e' | strip_html", "acd < e"),
]


@each_case("expression, text", NOTHING)
def test_filter_takes_what_data_may_be(expression: str, text: str) -> None:
    data = {**DATA, "no": False, "pair": ["a", None, 1.0], "mixed_numbers": [1, 1.0, True, 1]}
    assert Template(f"{{{{ {expression} }}}}").render(data) == text


@each_case(
    "expression, name",
    [
        ("list[5]", "list[5]"),
        ("map['x y']", "map['x y']"),
        ("map['x'] | upcase", "map.x"),
        ("gone.a.b", "gone"),
        ("map.a.b.c", "map.a.b"),
        ("list[-9]", "list[-9]"),
        ("rows[1].p", "rows[1].p"),
        ("'x' | append: map['q q']", "map['q q']"),
        ("map[code]", "map[code]"),
    ],
)
def test_missing_variable_is_named_as_the_template_names_it(expression: str, name: str) -> None:
    """https://github.com/Shopify/liquid/issues/1782. Never by a value, which may be a secret."""
    with pytest.raises(TemplateError) as error:
        Template(f"{{{{ {expression} }}}}").render(DATA)
    assert error.value.variable == name
    assert name in str(error.value) or repr(name) in str(error.value)
