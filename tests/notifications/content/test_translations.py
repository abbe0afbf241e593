"""Translations in place of the outputs that show them, and what is wrong with a template's."""

from typing import Any

import pytest

from notifications.catalog.designs import Design
from notifications.content import linting, looks, translations
from notifications.content.engine import Template, TemplateError
from notifications.content.partials import Expanded
from notifications.content.source import MAX_SOURCE
from notifications.content.templates import LAYOUT_PART, Part
from tests.support.tables import each_case

ROOM = next(part for part in Part if part.is_markdown)
TEXTS: dict[str, dict[str, Any]] = {
    "default": {
        "hello": "Hello, {name}!",
        "plain": "Tom & Jerry <b>",
        "items": "{count, plural, =0 {Nothing} one {# item} other {# items}} for {name}",
        "role": "{role, select, admin {All} true {Yes} other {Some}}",
        "braces": "'{'{name}'}' '{'%",
        "blank": "{count, plural, one { } other {s}}|",
        "lines": "one\ntwo {name}",
        "deep": {"er": {"text": "Deep"}},
        "only": "Default",
        "long": "x" * 2_000,
        "linked": "Code: {code}",
    },
    "pl": {
        "hello": "Cześć, {name}!",
        "items": "{count, plural, one {# rzecz} few {# rzeczy} many {# rzeczy} other {# rzeczy}}",
        "linked": "https://example.com/{code}",
    },
    "ar": {"hello": "مرحبا {name}"},
    "pt": {"hello": "Olá, {name}!"},
    "pt-BR": {"plain": "Tom"},
}
PARTIALS = {"greet": {"default": {"text": "{{ 'hello' | t: name: who }}"}}}
DESIGN = Design(number=1, translations=TEXTS, partials=PARTIALS)


def expand(source: str, part: Part = Part.BODY, locale: str | None = None) -> Expanded:
    expanded = looks.with_partials(source, part, "default", DESIGN)
    languages = looks.translation_languages(DESIGN, locale)
    return looks.translate(expanded, part, languages, DESIGN)


def render(source: str, part: Part = Part.BODY, locale: str | None = None, **data: Any) -> str:
    template = Template(expand(source, part, locale).text, environment=part.environment)
    return template.render({"name": "Ada & Bo", "user": {"name": "Ada"}, **data})


@each_case(
    "source, locale, expected",
    [
        ("{{ 'hello' | t: name: user.name }}", None, "Hello, Ada!"),
        ('{{ "hello"|t:name:user["name"] }}', None, "Hello, Ada!"),
        ("{{ 'hello' | t: name: 'Eva', more: 1 }}", "pl", "Cześć, Eva!"),
        ("a \n{{- 'hello' | t: name: name -}}\n b", None, "aHello, Ada & Bo!b"),
        ("{{ 'deep.er.text' | t }}", "pl", "Deep"),
        # The fallback chain is that of templates.
        ("{{ 'hello' | t: name: 1 }} {{ 'plain' | t }}", "pt_BR", "Olá, 1! Tom"),
        ("{{ 'only' | t }}", "pt-BR", "Default"),
        ("{{ 'hello' | t: name: 1 }}", "de", "Hello, 1!"),
        ("{{ 'role' | t: role: 'admin' }}", None, "All"),
        ("{{ 'role' | t: role: flag }}", None, "Yes"),
        ("{{ 'role' | t: role: 'x' }}", None, "Some"),
        ("{{ 'braces' | t: name: 1 }}", None, "{1} {%"),
        ("{{ 'blank' | t: count: 1 }}{{ 'blank' | t: count: 2 }}", None, " |s|"),
        ("{% render 'greet', who: user.name %}", "pl", "Cześć, Ada!"),
        ("{% assign who = user.name | upcase %}{{ 'hello' | t: name: who }}", None, "Hello, ADA!"),
        (
            "{% for i in (1..2) %}{{ 'items' | t: count: i, name: i }};{% endfor %}",
            None,
            "1 item for 1;2 items for 2;",
        ),
        ("{% raw %}{{ 'hello' | t }}{% endraw %}", None, "{{ 'hello' | t }}"),
        ("{% comment %}{{ 'nope' | t }}{% endcomment %}a", None, "a"),
        ("{{ name | append: ' | t' }}", None, "Ada & Bo | t"),
    ],
)
def test_translation_is_shown(source: str, locale: str | None, expected: str) -> None:
    assert render(source, locale=locale, flag=True) == expected


@each_case(
    "count, locale, expected",
    [
        (0, None, "Nothing for x"),
        (1, None, "1 item for x"),
        (1.0, None, "1 item for x"),
        ("1234.50", None, "1,234.5 items for x"),
        (2, "pl", "2 rzeczy"),
        (5, "pl", "5 rzeczy"),
        (12345, "pl", "12\u00a0345 rzeczy"),
        # A text of the default language has the forms of that language.
        (5, "ar", "5 items for x"),
    ],
)
def test_plural_is_that_of_the_language_of_the_text(
    count: Any, locale: str | None, expected: str
) -> None:
    source = "{{ 'items' | t: count: n, name: 'x' }}"
    assert render(source, locale=locale, n=count) == expected


@each_case("count", ["many", "", None, True, [1], "1" * 50, float("inf")])
def test_what_is_no_number_has_no_plural(count: Any) -> None:
    with pytest.raises(TemplateError) as refused:
        render("{{ 'items' | t: count: n, name: 'x' }}", n=count)
    assert refused.value.code == "template_failed"


def test_missing_value_is_named() -> None:
    for source in (
        "{{ 'hello' | t: name: gone }}",
        "{{ 'items' | t: count: gone, name: 1 }}",
        "{{ 'role' | t: role: gone }}",
    ):
        with pytest.raises(TemplateError) as refused:
            render(source)
        assert (refused.value.code, refused.value.variable) == ("missing_variable", "gone")


def test_text_and_values_are_escaped_by_the_part() -> None:
    source = "{{ 'plain' | t }} {{ 'hello' | t: name: name }}"
    assert render(source) == "Tom & Jerry <b> Hello, Ada & Bo!"
    assert render(source, LAYOUT_PART) == ("Tom &amp; Jerry &lt;b&gt; Hello, Ada &amp; Bo!")
    assert render(source, ROOM) == "Tom & Jerry \\<b\\> Hello, Ada & Bo!"


def test_translation_without_a_choice_keeps_the_fast_path() -> None:
    template = Template(expand("{{ 'hello' | t: name: user.name }} {{ 'plain' | t }}").text)
    assert template.has_fast_path


@each_case(
    "source, code, reason",
    [
        ("{{ key | t }}", "translation", "The key is a text"),
        ("{{ 'plain' | t | upcase }}", "translation", "The key is a text"),
        ("{{ 'plain' | upcase | t }}", "translation", "The key is a text"),
        ("{% assign x = 'plain' | t %}", "translation", "A translation is an output."),
        ("{% if x %}{% echo 'plain' | t %}{% endif %}", "translation", "A translation is an"),
        ("{{ 'hello' | t: name }}", "translation", "An argument is a name with"),
        ("{{ 'hello' | t: name: user.name | upcase }}", "translation", "An argument is"),
        ("{{ 'hello' | t }}", "translation", "'hello' in en needs 'name'"),
        ("{{ 'helo' | t }}", "unknown_translation", "Did you mean 'hello'?"),
        ("{{ 'deep' | t }}", "unknown_translation", "no translation 'deep'"),
    ],
)
def test_wrong_use_is_refused_with_its_line(source: str, code: str, reason: str) -> None:
    with pytest.raises(TemplateError) as refused:
        expand(f"a\n\n{source}")
    assert (refused.value.code, refused.value.line) == (code, 3)
    assert reason in str(refused.value)


def test_lines_are_those_of_the_template() -> None:
    expanded = expand("a\n{{ 'lines' | t: name: 1 }}\n{% render 'greet', who: 1 %}\nb")
    assert expanded.text == "a\none\ntwo {{ 1 }}\nHello, {{ 1 }}!\nb"
    assert [expanded.line_of(line) for line in range(1, 6)] == [1, 2, 2, 3, 4]
    assert [expanded.partial_of(line) for line in (3, 4)] == [None, "greet"]


def test_text_with_translations_is_as_long_as_a_part() -> None:
    times = MAX_SOURCE // 2_000 + 1
    with pytest.raises(TemplateError) as refused:
        expand("{{ 'long' | t }}" * times)
    assert refused.value.code == "too_long"


def test_keys_of_a_source_are_found() -> None:
    found = translations.keys_of("{{ 'a.b' | t }}{{ \"c\"|t: x: 'd' }}{{ 'e' | tt }}{{ 'f' }}")
    assert found == {"a.b", "c"}


def lint(parts: dict[str, dict[str, str]], **options: Any) -> list[str]:
    fields = {"name": "parcel", "example_data": {"code": "77", "n": 2}, "sensitive": frozenset()}
    found = linting.lint_template(
        **{**fields, **options}, parts=parts, design=DESIGN, has_dry_run=False
    )
    return [fault.place for fault in found]


def test_template_is_checked_in_each_language_of_its_translations() -> None:
    body = "{{ 'linked' | t: code: code }}"
    parts = {"default": {"subject": "A", "body": body}}
    assert lint(parts) == []
    (exposed,) = lint(parts, sensitive=frozenset(["code"]))
    assert exposed.startswith("body, default, line 1: Translated into pl: 'code' is sensitive")
    # A language of its own is that of its recipients, in which the text is not translated.
    own = {**parts, "pl": {"subject": "B", "body": "{{ code }}"}}
    assert len(lint(own, sensitive=frozenset(["code"]))) == 1


def test_key_and_value_that_lack_are_found_when_a_template_is_stored() -> None:
    parts = {
        "default": {"subject": "{{ 'nope' | t }}", "body": "{{ 'hello' | t: name: gone }}"},
        "pt": {"body": "a\n{{ 'hello' | t: nam: n }}"},
    }
    assert lint(parts) == [
        "subject, default, line 1: The default language has no translation 'nope'.",
        "body, pt, line 2: 'hello' in pt needs 'name': {{ 'hello' | t: name: … }}.",
        "body, default, line 1: The type's example data has no 'gone'.",
    ]


def test_sensitive_variable_chooses_no_plural() -> None:
    parts = {"default": {"subject": "A", "body": "{{ 'items' | t: count: n, name: code }}"}}
    (refused, *_) = lint(parts, sensitive=frozenset(["n"]))
    assert "remove the filter 'format_number'" in refused
