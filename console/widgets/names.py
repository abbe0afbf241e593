"""Names of types, clients and staff, each in one read, and titles of pages."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from access.models import APIClient, StaffUser
from notifications.models import NotificationType

from ..texts.labels import code_label
from .formats import utc_text


def type_names(slugs: Collection[str]) -> Mapping[str, str]:
    """Return the types' names. The name of an unregistered type is derived from its slug."""
    known = NotificationType.objects.only("name").in_bulk(list(slugs))
    return {slug: known[slug].name if slug in known else code_label(slug) for slug in slugs}


def page_title(what: str, *, user_id: str | None, at: datetime) -> str:
    """Return the title of the page of a message: what it is, and to whom or when."""
    return f"{what} to {user_id}" if user_id else f"{what}, {utc_text(at)}"


def client_names(client_ids: Collection[Any]) -> Mapping[Any, str]:
    """Return the clients' names. The name of a deleted client is its ID."""
    known = APIClient.objects.only("name").in_bulk(list(client_ids))
    return {key: known[key].name if key in known else str(key) for key in client_ids}


def staff_names(user_ids: Collection[Any]) -> Mapping[Any, str]:
    """Return the usernames of existing users."""
    known = StaffUser.objects.only("username").in_bulk(list(user_ids))
    return {key: user.username for key, user in known.items()}


def author(stored: str) -> str:
    """Return who made a version or a design, of ``staff:maria`` or ``app:shop``."""
    who, _, name = stored.partition(":")
    return f"{name} (client)" if who == "app" else name
