"""Inlining of style sheets in HTML that contains Liquid."""

import pytest

from notifications.content import inlining, templates
from notifications.content.engine import HTML_ENVIRONMENT, LAYOUT_ENVIRONMENT, Template
from notifications.content.source import find_liquid
from notifications.content.templates import Part
from tests.support.tables import each_case

CSS = "p { margin: 0; } .quiet { color: gray; } td { padding: 1px; }"


def inlined(source: str) -> str:
    return inlining.inline_fragment(source, css=CSS)


def test_rule_is_inlined_into_matching_elements() -> None:
    assert inlined('<p>a</p><p class="quiet">b</p>') == (
        '<p style="margin: 0;">a</p><p class="quiet" style="margin: 0;color: gray;">b</p>'
    )


def test_inline_style_wins() -> None:
    assert "color: red" in inlined('<p class="quiet" style="color: red">a</p>')
    assert "gray" not in inlined('<p class="quiet" style="color: red">a</p>')


@pytest.mark.parametrize(
    "liquid",
    [
        "{{ a }}",
        "{{ a | default: '<b> & \"c\"' }}",
        "{% if a > 1 and b < 2 %}x{% endif %}",
        "{% comment %}<p>{% endcomment %}",
        "{%- assign x = a -%}",
    ],
)
def test_liquid_is_kept(liquid: str) -> None:
    assert inlined(f"<p>{liquid}</p>") == f'<p style="margin: 0;">{liquid}</p>'


def test_condition_between_rows_is_kept() -> None:
    source = "<table>{% if a %}<tr><td>{{ a }}</td></tr>{% endif %}</table>"
    template = Template(inlined(source), environment=HTML_ENVIRONMENT)
    assert template.render({"a": "x"}).count("<td") == 1
    assert template.render({"a": "x"}).index("<table") < template.render({"a": "x"}).index("x")
    assert "<td" not in template.render({"a": False})


def test_loop_over_rows_is_kept() -> None:
    source = "<table>{% for a in list %}<tr><td>{{ a }}</td></tr>{% endfor %}</table>"
    html = Template(inlined(source), environment=HTML_ENVIRONMENT).render({"list": ["<1>", "2"]})
    assert html.count('<td style="padding: 1px;">') == 2
    assert "&lt;1&gt;" in html


def test_value_in_an_attribute_is_escaped() -> None:
    html = inlined("""<a href="{{ url }}" title='{% if a %}"{% endif %}'>x</a>""")
    shown = Template(html, environment=HTML_ENVIRONMENT).render({"url": 'x" onclick="y', "a": 1})
    assert "onclick" in shown
    assert '" onclick' not in shown


@each_case(
    "source, index",
    [
        ('<a href="{{ url }}">x</a>', None),
        ("<a title='{% if a > 1 %}x{% endif %}'>x</a>", None),
        ("<p>{{ a }}</p>{% if b %}<p>c</p>{% endif %}", None),
        ("<!-- <a {{ b }}> --><p>c</p>", None),
        ("<p>1 < 2 {{ a }} > 3</p>", None),
        ("<a {{ attributes }}>x</a>", 3),
        ("<p>x</p><a href={{ url }}>x</a>", 16),
        ('<p{% if a %} class="b"{% endif %}>x</p>', 2),
    ],
)
def test_misplaced_liquid_is_found(source: str, index: int | None) -> None:
    assert inlining.find_misplaced_liquid(source) == index


def test_placeholder_characters_are_removed() -> None:
    assert inlined("<p>{{ a }}\ue0000\ue001</p>") == '<p style="margin: 0;">{{ a }}0</p>'


def test_shipped_layout_keeps_its_liquid() -> None:
    source = templates.read_shipped(templates.LAYOUT, Part.EMAIL_HTML, "default")
    assert source is not None
    html = inlining.inline_layout(source)
    assert [html[item.start : item.end] for item in find_liquid(html)] == [
        source[item.start : item.end] for item in find_liquid(source)
    ]
    assert inlining.find_misplaced_liquid(source) is None
    Template(html, environment=LAYOUT_ENVIRONMENT)


def test_opening_tag_has_inline_style() -> None:
    assert inlining.opening_tag("p", css=CSS) == '<p style="margin: 0;">'
    assert inlining.opening_tag("h3", css=CSS) == "<h3>"
