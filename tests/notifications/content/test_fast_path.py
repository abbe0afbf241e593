"""The fast path for plain templates gives the same text as Liquid."""

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from liquid import Environment
from liquid.exceptions import LiquidError

from notifications.content import engine, templates
from notifications.content.engine import HTML_ENVIRONMENT, MAX_OUTPUT, TEXT_ENVIRONMENT
from tests.support.factories.notifications import SHIPPED
from tests.support.tables import each_case

RECIPIENT = {"name": "Ada <3", "locale": "pt", "timezone": "Europe/Lisbon"}


def filled(
    source: str, variables: dict[str, Any], environment: Environment = TEXT_ENVIRONMENT
) -> str | None:
    """Return the text of the fast path; None if the template is left to Liquid."""
    pieces = engine.compile_fast_path(environment.from_string(source))
    if pieces is None:
        return None
    escape = getattr(environment, "escape", None)
    return engine.fill_fast_path(pieces, variables, escape=escape)


def rendered(
    source: str, variables: dict[str, Any], environment: Environment = TEXT_ENVIRONMENT
) -> str | None:
    try:
        return environment.from_string(source).render(variables)
    except LiquidError:
        return None


@each_case(
    "source, text",
    [
        ("Hello.", "Hello."),
        ("Hello {{ name }}.", "Hello Ada & Co."),
        ("{{name}}{{ count }}", "Ada & Co3"),
        ("{{ recipient.name }}", "Ada <3"),
        ("{{ order.item.title }}", "Sunrise"),
        ("{% if name %}Hello {{ name }}, {% endif %}welcome", "Hello Ada & Co, welcome"),
        ("{% if nobody %}Hello{% else %}Good day{% endif %}", "Good day"),
        ("{% if recipient.nickname %}Hello{% endif %}!", "!"),
        ("{% if off %}a{% else %}b{% endif %}{% if nothing %}c{% endif %}", "bc"),
        ("{% if name %}{% if count %}both{% endif %}{% endif %}", "both"),
        (" {{- name -}} ", "Ada & Co"),
    ],
)
def test_plain_template_takes_the_fast_path(source: str, text: str) -> None:
    variables = {
        "name": "Ada & Co",
        "count": 3,
        "recipient": RECIPIENT,
        "off": False,
        "nothing": "",
        "order": {"item": {"title": "Sunrise"}},
    }
    assert filled(source, variables) == text == rendered(source, variables)


def test_values_are_escaped_in_html() -> None:
    variables = {"name": "<script>\"'&", "count": 3}
    source = "<p>{{ name }} {{ count }}</p>"
    assert filled(source, variables, HTML_ENVIRONMENT) == rendered(
        source, variables, HTML_ENVIRONMENT
    )
    assert filled(source, variables, HTML_ENVIRONMENT) == "<p>&lt;script&gt;&#34;&#39;&amp; 3</p>"


@each_case(
    "source",
    [
        "{{ name | upcase }}",
        "{{ 'text' }}",
        "{{ items[0] }}",
        "{{ items.size }}",
        "{{ items.first }}",
        "{{ now }}",
        "{% if today %}x{% endif %}",
        "{{ partial }}",
        "{% if name == 'Ada' %}x{% endif %}",
        "{% if name and count %}x{% endif %}",
        "{% if name %}x{% elsif count %}y{% endif %}",
        "{% if name %}  {% endif %}",
        "{% unless name %}x{% endunless %}",
        "{% for one in items %}{{ one }}{% endfor %}",
        "{% assign x = 1 %}{{ x }}",
    ],
)
def test_complex_template_is_left_to_liquid(source: str) -> None:
    assert engine.compile_fast_path(TEXT_ENVIRONMENT.from_string(source)) is None


@each_case(
    "value",
    [None, True, False, 1.5, [1, 2], {"a": 1}, "two\r\nlines", "x" * MAX_OUTPUT],
)
def test_complex_value_is_left_to_liquid(value: Any) -> None:
    assert filled("{{ name }}", {"name": value}) is None


@pytest.mark.parametrize("variables", [{}, {"order": {}}, {"order": "x"}, {"order": [1]}])
def test_missing_variable_is_left_to_liquid(variables: dict[str, Any]) -> None:
    """Liquid's error names the missing variable."""
    assert filled("{{ order.item }}", variables) is None


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(max_size=6) | st.floats(),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["a", "b", "size"]), inner, max_size=2)
    ),
    max_leaves=4,
)
PIECES = st.sampled_from(
    [
        "{{ a }}",
        "{{ a.b }}",
        "{{ b.a.b }}",
        "{{- a -}}",
        "{{ a.size }}",
        "{{ now.a }}",
        "{% if a %}",
        "{% if a.b %}",
        "{% else %}",
        "{% endif %}",
        "text ",
        "<b>",
        "\n",
        " ",
    ]
)


@settings(deadline=None)
@given(
    st.lists(PIECES, max_size=6).map("".join),
    st.dictionaries(st.sampled_from(["a", "b", "c"]), VALUES, max_size=3),
    st.sampled_from([TEXT_ENVIRONMENT, HTML_ENVIRONMENT]),
)
@example("{% if a.b %}x{% endif %}", {"a": "text"}, TEXT_ENVIRONMENT)
@example("{{ a.b }}", {"a": {"b": "\r"}}, HTML_ENVIRONMENT)
def test_equals_liquid(source: str, variables: dict[str, Any], environment: Environment) -> None:
    try:
        environment.from_string(source)
    except LiquidError:
        return
    text = filled(source, variables, environment)
    assert text is None or text == rendered(source, variables, environment)


@each_case("slug", sorted(SHIPPED))
def test_shipped_texts_equal_liquid(slug: str) -> None:
    data = {"order": "<1>", "amount": "49.90", "video_title": "Sun & rise", "order_id": 1001}
    variables = {**data, "recipient": RECIPIENT}
    for parts in templates.shipped_texts(slug).values():
        for name, source in parts.items():
            environment = HTML_ENVIRONMENT if name == "email_html" else TEXT_ENVIRONMENT
            text = filled(source, variables, environment)
            assert text is None or text == rendered(source, variables, environment)


def test_most_shipped_texts_take_the_fast_path() -> None:
    sources = [
        source
        for slug in SHIPPED
        for parts in templates.shipped_texts(slug).values()
        for source in parts.values()
    ]
    plain_ones = [
        source
        for source in sources
        if engine.compile_fast_path(TEXT_ENVIRONMENT.from_string(source)) is not None
    ]
    assert len(plain_ones) > len(sources) * 0.6
