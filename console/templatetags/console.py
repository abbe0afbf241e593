"""What the pages of the console are made of: icons, coloured labels, tables of figures."""

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from ..widgets.columns import plain_chip

register = template.Library()


register.simple_tag(plain_chip, name="chip")


@register.simple_tag
def icon(name: str, color: str = "") -> SafeString:
    """Return an icon that says nothing to those who do not see it."""
    return format_html(
        '<span class="material-symbols-outlined{}" aria-hidden="true">{}</span>',
        f" color-{color}" if color else "",
        name,
    )


@register.simple_block_tag
def table(content: SafeString, labelled_by: str, *headers: str) -> SafeString:
    """Return a table around its rows that scrolls by itself, named by the heading with this id.

    A head may begin with the class of its column: ``number|Failed``.
    """
    return format_html(
        '<div class="scroll-x" tabindex="0" role="region" aria-labelledby="{}">'
        '<table class="figures"><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>',
        labelled_by,
        format_html_join("", "{}", ((_header_cell(header),) for header in headers)),
        content,
    )


def _header_cell(text: str) -> SafeString:
    column, _, words = text.rpartition("|")
    if not column:
        return format_html('<th scope="col">{}</th>', words)
    return format_html('<th scope="col" class="{}">{}</th>', column, words)
