"""The parts of the console's pages: what is put into them is text, and never markup."""

from typing import Any

from django.template import Context, Template


def rendered(source: str, **context: Any) -> str:
    return Template("{% load console %}" + source).render(Context(context))


def test_an_icon_is_hidden_from_those_who_do_not_see_it() -> None:
    assert rendered('{% icon "error" %}') == (
        '<span class="material-symbols-outlined" aria-hidden="true">error</span>'
    )
    shown = rendered('{% icon "error" "danger" %}')
    assert 'class="material-symbols-outlined color-danger"' in shown


def test_a_label_has_the_colour_of_its_tone() -> None:
    shown = rendered("{% chip words color %}", words="<b>5 & more</b>", color="calm")
    assert shown == '<span class="chip chip-calm">&lt;b&gt;5 &amp; more&lt;/b&gt;</span>'


def test_a_table_is_named_by_a_heading_and_its_columns_have_their_classes() -> None:
    rows = "{% for one in rows %}<tr><td>{{ one }}</td></tr>{% endfor %}"
    shown = rendered(
        '{% table "sums" "Channel" "number|Failed" "wide-only|Last (UTC)" %}'
        + rows
        + "{% endtable %}",
        rows=["<i>"],
    )
    assert shown == (
        '<div class="scroll-x" tabindex="0" role="region" aria-labelledby="sums">'
        '<table class="figures"><thead><tr><th scope="col">Channel</th>'
        '<th scope="col" class="number">Failed</th>'
        '<th scope="col" class="wide-only">Last (UTC)</th></tr></thead>'
        "<tbody><tr><td>&lt;i&gt;</td></tr></tbody></table></div>"
    )
