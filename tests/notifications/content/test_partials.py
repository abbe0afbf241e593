"""Partials in place of the tags that render them."""

import pytest

from notifications.content import partials
from notifications.content.engine import HTML_ENVIRONMENT, Template, TemplateError
from notifications.content.partials import MAX_NESTED, MAX_RENDERED, expand
from notifications.content.source import MAX_SOURCE
from tests.support.tables import each_case

PARTIALS = {
    "plain": "Bye.",
    "button": '<a href="{{ url }}">{{ label | upcase }}</a>',
    "list": "{% for item in items limit: most %}{{ item.name }},{% endfor %}",
    "numbers": "{% for i in (1..n) %}{{ i }}{% endfor %}",
    "outer": "[{%- render 'button', url: link, label: 'go' -%}]",
    "own": "{% assign url = url | append: '?a' %}{{ url }}",
    "filters": "{{ name | default: other | append: '!' | replace: 'a', last }}",
    "text": "{{ 'url' }} url {% comment %}{{ url }}{% endcomment %}{% raw %}{{ url }}{% endraw %}",
    "self": "{% render 'self' %}",
    "first": "{% render 'second' %}",
    "second": "{% render 'first' %}",
    "broken": "{% render button %}",
    "lines": "one\ntwo {{ oops }}\nthree\n",
    "all_at_once": "{% liquid\n assign x = 1\n echo x %}",
    "counter": "{% increment n %}",
    "shadow": "{{ total }}",
}
DATA = {
    "order": {"link": "https://example.com/1", "title": "A&B"},
    "orders": [{"name": "x"}, {"name": "y"}, {"name": "z"}],
    "name": "Ada",
    "n": 9,
    "last": "o",
}


def render(source: str) -> str:
    template = Template(expand(source, PARTIALS.get).text, environment=HTML_ENVIRONMENT)
    return template.render(DATA)


@each_case(
    "source, expected",
    [
        ("{% render 'plain' %}", "Bye."),
        ('{% render "plain" %}', "Bye."),
        ("a {% render 'plain' %} b", "a Bye. b"),
        ("a \n{%- render 'plain' -%}\n b", "aBye.b"),
        (
            "{% render 'button', url: order.link, label: order.title %}",
            '<a href="https://example.com/1">A&amp;B</a>',
        ),
        ("{% render 'numbers', n: 3 %}", "123"),
        ("{% render 'numbers' %}", "123456789"),
        ("{% render 'list', items: orders, most: 2 %}", "x,y,"),
        (
            "{% render 'outer', link: order.link %}",
            '[<a href="https://example.com/1">GO</a>]',
        ),
        ("{% render 'own', url: name %}{{ name }}", "Ada?aAda"),
        ("{% render 'filters', append: 'b', other: 'x' %}", "Ado!"),
        ("{% render 'text', url: 'x' %}", "url url {{ url }}"),
        (
            "{% for o in orders %}{% render 'button', url: o.name, label: o.name %}{% endfor %}",
            '<a href="x">X</a><a href="y">Y</a><a href="z">Z</a>',
        ),
        ("{% comment %}{% render 'nope' %}{% endcomment %}a", "a"),
    ],
)
def test_partial_is_rendered_in_place(source: str, expected: str) -> None:
    assert render(source) == expected


@each_case(
    "source, expected",
    [
        ("{% render 'nope' %}", "Unknown partial 'nope'."),
        ("{% render plain %}", "Expected {% render 'name' %}"),
        ("{% render 'plain' with order %}", "Expected {% render 'name' %}"),
        ("{% render 'plain' for orders as o %}", "Expected {% render 'name' %}"),
        ("{% render 'button', url: name | upcase %}", "An argument is a name"),
        ("{% render 'self' %}", "self → self"),
        ("{% render 'first' %}", "first → second → first"),
        ("{% render 'broken' %}", "Expected {% render 'name' %}"),
        ("{% render 'all_at_once' %}", "'liquid' isn't a tag of partials"),
        ("{% render 'counter' %}", "'increment' isn't a tag of partials"),
        (
            "{% assign total = 3 %}{% render 'shadow' %}",
            "Pass it: total: total.",
        ),
    ],
)
def test_what_cannot_be_rendered_is_named_with_its_line(source: str, expected: str) -> None:
    with pytest.raises(TemplateError) as caught:
        expand(f"\n\n{source}", PARTIALS.get)
    assert expected in str(caught.value)
    assert caught.value.line == 3


def test_passed_variable_of_the_template_is_seen() -> None:
    assert render("{% assign total = 3 %}{% render 'shadow', total: total %}") == "3"


def test_lines_are_those_of_the_template() -> None:
    expanded = expand("a\n{% render 'lines' %}b\nc", PARTIALS.get)
    assert expanded.text == "a\none\ntwo {{ oops }}\nthree\nb\nc"
    assert [expanded.line_of(number) for number in range(1, 7)] == [1, 2, 2, 2, 2, 3]
    assert expanded.partial_of(3) == "lines"
    assert (expanded.partial_of(1), expanded.partial_of(6)) == (None, None)


def test_source_without_partials_is_unchanged() -> None:
    source = "{{ a }} render {% if a %}b{% endif %}"
    assert expand(source, PARTIALS.get).text is source
    assert not partials.has_partials(source)


def nested(depth: int) -> dict[str, str]:
    chain = {f"p{n}": f"{{% render 'p{n + 1}' %}}" for n in range(depth - 1)}
    return {**chain, f"p{depth - 1}": "end"}


def test_depth_count_and_length_are_limited() -> None:
    """A partial that renders two, each of which renders two, and so on, ends at once."""
    call = "{% render 'p0' %}"
    assert expand(call, nested(MAX_NESTED).get).text == "end"
    with pytest.raises(TemplateError, match="render each other"):
        expand(call, nested(MAX_NESTED + 1).get)
    twice = {name: text * 2 for name, text in nested(MAX_NESTED).items()}
    with pytest.raises(TemplateError, match=f"At most {MAX_RENDERED}"):
        expand(call, twice.get)
    assert len(expand("{% render 'p0' %}" * MAX_RENDERED, {"p0": "x"}.get).text) == MAX_RENDERED
    long = {"p0": "x" * (MAX_SOURCE // 2)}
    with pytest.raises(TemplateError) as caught:
        expand(call * 3, long.get)
    assert caught.value.code == "too_long"
    around = {"p0": "{% render 'p1' %}" * 3, "p1": "x" * (MAX_SOURCE // 2)}
    with pytest.raises(TemplateError) as caught:
        expand(call, around.get)
    assert caught.value.code == "too_long"


def test_names_that_a_source_renders() -> None:
    source = "{% render 'a' %}{%- render 'b', x: 1 -%}{% comment %}{% render 'c' %}{% endcomment %}"
    assert partials.rendered_names(source) == {"a", "b"}
