"""The way to a page, in the words of the menu: who follows an entry finds its name at the top."""

from collections.abc import Mapping, Sequence
from typing import Any

from django import template
from django.conf import settings

register = template.Library()


@register.simple_tag
def breadcrumbs(parts: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the parts of the way: a list is called as in the menu, and no name comes twice.

    Of two that are called alike the last stays: a phone shows no other.
    """
    menu = _menu()
    named = [{**part, "title": menu.get(str(part.get("link")), part["title"])} for part in parts]
    return [
        part
        for part, following in zip(named, [*named[1:], None], strict=True)
        if following is None or _normalized(part["title"]) != _normalized(following["title"])
    ]


def _menu() -> Mapping[str, str]:
    """Return what the pages of the menu are called, by their addresses."""
    groups = settings.UNFOLD["SIDEBAR"]["navigation"]
    return {str(item["link"]): item["title"] for group in groups for item in group["items"]}


def _normalized(title: Any) -> str:
    return str(title).lower()
