"""Liquid is found where Liquid's own lexer finds it, in one pass."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from liquid.exceptions import LiquidSyntaxError
from liquid.lex import get_lexer
from liquid.token import TOKEN_OUTPUT, TOKEN_TAG

from notifications.content.engine import HTML_ENVIRONMENT, Template, TemplateError
from notifications.content.source import MAX_SOURCE, Kind, SourceError, find_liquid
from tests.support.tables import each_case
from tests.support.waiting import computing

TOKENS = [
    "{{",
    "}}",
    "{%",
    "%}",
    "{%-",
    "-%}",
    "{{-",
    "-}}",
    "{",
    "}",
    "%",
    "-",
    " ",
    "\n",
    "x",
    "#",
    "{% raw %}",
    "{% endraw %}",
    "{%- endraw -%}",
    "{% doc %}",
    "{% enddoc %}",
    "{% comment %}",
    "{% endcomment %}",
    "{% comment x %}",
    "{%comment%}",
    "{% # a %}",
    "{{ a }}",
    "{% if a %}",
    "{% endif %}",
    "{{ '}' }}",
    "{% assign b = '{{' %}",
    "raw",
    "\u00a0",
]

BLOCKS = ("comment", "endcomment", "raw", "endraw")


@settings(max_examples=400)
@given(st.lists(st.sampled_from(TOKENS), max_size=14).map("".join))
def test_liquid_is_where_the_lexer_finds_it(source: str) -> None:
    try:
        pieces = find_liquid(source)
    except SourceError:
        return
    tokens = list(get_lexer()(source))
    outputs = [token.start_index for token in tokens if token.kind == TOKEN_OUTPUT]
    tags = [
        source.rindex("{%", 0, token.start_index)
        for token in tokens
        if token.kind == TOKEN_TAG and token.value not in BLOCKS
    ]
    assert outputs == [piece.start for piece in pieces if piece.kind is Kind.OUTPUT]
    assert tags == [
        piece.start for piece in pieces if piece.kind is Kind.TAG and piece.name not in BLOCKS
    ]


@each_case(
    "source, reason",
    [
        ("a{{ b", "Expected '}}', found end of file."),
        ("a{% b", "Expected '%}', found end of file."),
        ("a{% raw %}{{ b", "Expected tag endraw, found end of file."),
        ("a{% doc %}{% enddoc", "Expected tag enddoc, found end of file."),
        ("a{% comment %}{% comment %}{% endcomment %}", "Expected tag endcomment, found end of"),
        ("a{% %}", "Missing tag name or closing delimiter."),
    ],
)
def test_unclosed_liquid_is_refused_with_its_place(source: str, reason: str) -> None:
    with pytest.raises(SourceError, match=reason.replace("{", r"\{")) as error:
        find_liquid(source)
    assert error.value.index == 1
    with pytest.raises((LiquidSyntaxError, TemplateError)):
        Template(source)


OPENINGS = (
    "{{",
    "{%",
    "{{{",
    "{% raw %}",
    "{% comment %}",
    "{% doc %}",
    "{%- ",
    "{% if a %}",
    "}}",
)


@each_case("opening", OPENINGS)
@each_case("block", ["raw", "doc", "comment", ""])
def test_every_source_is_read_in_linear_time(block: str, opening: str) -> None:
    """A raw block of 62 KB of openings occupied a process for a minute."""
    inside = opening * ((MAX_SOURCE - 100) // len(opening))
    source = f"{{% {block} %}}{inside}{{% end{block} %}}<p>x</p>" if block else inside
    with computing(at_most=0.2):
        try:
            find_liquid(source)
            Template(source, environment=HTML_ENVIRONMENT)
        except (SourceError, TemplateError):
            pass
