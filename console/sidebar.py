"""The menu of one user: the pages that they may open, and their saved views."""

from typing import Any

from django.http import HttpRequest

from .navigation import NAVIGATION, VIEWS
from .saved_views.menu import menu_items


def sidebar(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the entries that the user may open, in the form that the theme reads."""
    return [
        {
            "title": group.title,
            "separator": group.title is not None,
            "items": [
                *(menu_items(request) if group.title == VIEWS else ()),
                *(
                    {
                        "title": item.title,
                        "icon": item.icon,
                        "link": item.url,
                        "active": item.is_active(request.path),
                    }
                    for item in group.items
                    if item.is_visible(request.user)
                ),
            ],
        }
        for group in NAVIGATION
    ]
