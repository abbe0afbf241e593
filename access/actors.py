"""Who writes and who decides: people by all that they sign in with, and clients of the API."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bson import ObjectId
from django.contrib.auth.models import Group, Permission

from .documents import OIDC_IDENTITIES
from .models import StaffUser


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """A member of staff or a client, with each name under which it may be known."""

    key: str
    """The account, or the client."""
    keys: frozenset[str]
    """That, and the person's identities at the OpenID provider: an account may change hands."""


def client_actor(client_id: ObjectId) -> Actor:
    """Return a client of the API."""
    key = f"client:{client_id}"
    return Actor(key=key, keys=frozenset({key}))


def staff_key(user_id: Any) -> str:
    """Return the key of an account."""
    return f"staff:{user_id}"


def staff_actor(user_id: Any) -> Actor:
    """Return a member of staff. Raises PyMongoError."""
    key = staff_key(user_id)
    identities = OIDC_IDENTITIES().find({"user_id": user_id}, {"_id": 1})
    return Actor(key=key, keys=frozenset({key, *(f"oidc:{known['_id']}" for known in identities)}))


def staff_among(keys: Iterable[str]) -> Sequence[StaffUser]:
    """Return the active staff whose accounts are among the keys of actors."""
    prefix = staff_key("")
    ids = [key.removeprefix(prefix) for key in keys if key.startswith(prefix)]
    known = [ObjectId(key) for key in ids if ObjectId.is_valid(key)]
    return list(StaffUser.objects.filter(is_active=True, pk__in=known)) if known else []


def staff_with(permission: str, *, limit: int) -> Sequence[StaffUser]:
    """Return up to ``limit`` active staff with a permission such as ``app.codename``."""
    app, _, codename = permission.partition(".")
    known = [
        stored.pk
        for stored in Permission.objects.filter(codename=codename).order_by()
        if stored.content_type.app_label == app
    ]
    allowed = Group.permissions.through.objects.filter(permission_id__in=known)
    roles = set(allowed.values_list("group_id", flat=True))
    members = StaffUser.groups.through.objects.filter(group_id__in=roles)
    own = StaffUser.user_permissions.through.objects.filter(permission_id__in=known)
    keys = {
        *members.values_list("staffuser_id", flat=True),
        *own.values_list("staffuser_id", flat=True),
    }
    active = StaffUser.objects.filter(is_active=True)
    found = {user.pk: user for user in active.filter(pk__in=keys)}
    found |= {user.pk: user for user in active.filter(is_superuser=True)}
    return list(found.values())[:limit]
