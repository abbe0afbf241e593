"""Template tags of the console: icons, chips, times, tables and breadcrumbs."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django import template
from django.conf import settings
from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from access.staff.oidc.discovery import is_enabled

from ..navigation import NAVIGATION
from ..widgets import formats
from ..widgets.columns import chip
from ..widgets.links import next_page

register = template.Library()
register.simple_tag(chip)
register.simple_tag(formats.precise)


@register.simple_tag
def time(at: datetime | None, empty: str = formats.EMPTY) -> SafeString | str:
    """Return an instant as a time element, or ``empty``."""
    return formats.timestamp(at or None, empty=empty)


@register.simple_tag
def icon(name: str, color: str = "") -> SafeString:
    """Return an icon, hidden from screen readers."""
    return format_html(
        '<span class="material-symbols-outlined{}" aria-hidden="true">{}</span>',
        f" color-{color}" if color else "",
        name,
    )


@register.simple_tag(takes_context=True)
def oidc_provider(context: Mapping[str, Any]) -> dict[str, str] | None:
    """Return the name and the URL of sign-in by the OpenID provider; None without one."""
    if not is_enabled():
        return None
    query = urlencode({"next": next_page(context["request"])})
    return {"name": settings.OIDC_NAME, "url": f"{reverse('oidc-sign-in')}?{query}"}


@register.simple_tag
def field_errors(form: Any) -> list[dict[str, str]]:
    """Return the label, the element's ID, and the text of each field error of a form."""
    return [
        {"label": str(form[name].label), "target": form[name].auto_id, "text": text}
        for name, texts in form.errors.items()
        if name in form.fields
        for text in texts
    ]


@register.simple_block_tag
def table(content: SafeString, labelled_by: str, *headers: str) -> SafeString:
    """Return a table that scrolls by itself. Headers may have a class: ``number|Failed``."""
    return format_html(
        '<div class="scroll-x" tabindex="0" role="group" aria-labelledby="{}">'
        '<table class="figures"><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>',
        labelled_by,
        format_html_join("", "{}", ((_header_cell(header),) for header in headers)),
        content,
    )


def _header_cell(header: str) -> SafeString:
    column, _, text = header.rpartition("|")
    if not column:
        return format_html('<th scope="col">{}</th>', text)
    return format_html('<th scope="col" class="{}">{}</th>', column, text)


@register.simple_tag(takes_context=True)
def breadcrumbs(
    context: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Return the breadcrumbs in the menu's words: its group, its entry, and the object's title.

    The entry leads back to the list from which the page was opened, with its filters.
    """
    shown = [*parts[1:]] if len(parts) > 1 else []
    query = context["request"].GET if "request" in context else {}
    if len(shown) > 1 and (source := _list_in(query, type(shown[-1]["title"]))):
        shown[-2] = {**shown[-2], "link": source}
    found = [_crumb(part) for part in shown] if shown else [*parts]
    group = next((title for part in found if (title := _group_of(part.get("link")))), None)
    if len(found) > 1 and found[-1].get("is_object") and (kept := query.get("_changelist_filters")):
        found[-2] = {**found[-2], "link": f"{found[-2]['link']}?{kept}"}
    # Keep the last of two equal titles, because a phone shows only the last breadcrumb.
    named = [{"title": group}, *found] if group else found
    return [
        part
        for part, following in zip(named, [*named[1:], None], strict=True)
        if following is None or str(part["title"]).lower() != str(following["title"]).lower()
    ]


def _list_in(query: Mapping[str, str], shown: type) -> str | None:
    """Return the URL of the list that ``query`` names, if it is a second one of a page's model."""
    name = query.get("list")
    for model in admin.site._registry:
        options = model._meta
        if options.model_name == name and options.proxy and options.concrete_model is shown:
            return reverse(f"admin:{options.app_label}_{name}_changelist")
    return None


def _crumb(part: Mapping[str, Any]) -> Mapping[str, Any]:
    menu = {item.url: item.title for group in NAVIGATION for item in group.items}
    page = admin.site._registry.get(type(part["title"]))
    if page is not None and part["title"].pk:
        return {**part, "title": page.object_title(part["title"]), "is_object": True}
    return {**part, "title": menu.get(str(part.get("link")), part["title"])}


def _group_of(link: object) -> str | None:
    """Return the title of the menu's group with a link; None for the group without a title."""
    for group in NAVIGATION:
        if any(item.url == str(link) for item in group.items):
            return group.title
    return None
