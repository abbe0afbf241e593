"""Staff accounts of people who sign in by the provider, and their roles."""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from bson import ObjectId
from django.conf import settings
from django.contrib.auth.models import Group
from django.db import IntegrityError
from pymongo import ReturnDocument

from ...documents import OIDC_IDENTITIES
from ...models import StaffUser
from .errors import Refusal, RefusedError
from .tokens import Identity

MAX_USERNAME, MAX_NAME, MAX_EMAIL = 150, 150, 254
MAX_SAME_NAMES = 20
_NOT_IN_USERNAME = re.compile(r"[^\w.@+-]+")


def find_roles(groups: Iterable[str]) -> frozenset[str]:
    """Return the roles of a person's groups. Raises RefusedError if there are none."""
    mapping: Mapping[str, str] = settings.OIDC_GROUP_ROLES
    roles = frozenset(mapping[group] for group in groups if group in mapping)
    if not roles:
        raise RefusedError(Refusal.NO_GROUP)
    return roles


def find_account(subject: str) -> StaffUser | None:
    """Return the account of a person who has signed in before."""
    stored = OIDC_IDENTITIES().find_one({"_id": _key(subject)})
    if stored is None:
        return None
    return StaffUser.objects.filter(pk=stored["user_id"]).first()


def store_account(identity: Identity, *, now: datetime) -> StaffUser:
    """Return the account of a person, created at the first sign-in.

    It is found by issuer and subject only: a username or an email address may be given to another
    person. An account that staff created is therefore never taken over. Raises RefusedError if
    staff deactivated the account.
    """
    user_id = _user_id(identity.subject, now=now)
    user = StaffUser.objects.filter(pk=user_id).first()
    if user is None:
        return _create(user_id, identity, now=now)
    if not user.is_active:
        raise RefusedError(Refusal.INACTIVE)
    return user


def apply_profile(user: StaffUser, identity: Identity) -> None:
    """Store the person's name and email, as the provider states them."""
    claims = identity.claims
    fields = {
        "first_name": _short(claims.get("given_name"), MAX_NAME),
        "last_name": _short(claims.get("family_name"), MAX_NAME),
        "email": _short(claims.get("email"), MAX_EMAIL),
        "is_staff": True,
    }
    changed = [
        name for name, value in fields.items() if value != "" and value != getattr(user, name)
    ]
    for name in changed:
        setattr(user, name, fields[name])
    if changed:
        user.save(update_fields=changed)


def apply_roles(user: StaffUser, names: frozenset[str]) -> bool:
    """Give an account exactly these roles and no rights of its own. Return whether it changed.

    Raises RefusedError if a role isn't stored.
    """
    wanted = set(Group.objects.filter(name__in=sorted(names)).values_list("pk", flat=True))
    if len(wanted) != len(names):
        raise RefusedError(Refusal.ROLE_MISSING)
    through = StaffUser.groups.through.objects
    current = set(through.filter(staffuser_id=user.pk).values_list("group_id", flat=True))
    own = StaffUser.user_permissions.through.objects.filter(staffuser_id=user.pk)
    has_own = own.exists()
    if current == wanted and not has_own and not user.is_superuser:
        return False
    # Rights are taken away first: a request between the writes has fewer.
    if user.is_superuser:
        user.is_superuser = False
        user.save(update_fields=["is_superuser"])
    if has_own:
        user.user_permissions.clear()
    user.groups.remove(*(current - wanted))
    user.groups.add(*(wanted - current))
    return True


def _user_id(subject: str, *, now: datetime) -> ObjectId:
    new: dict[str, Any] = {"user_id": ObjectId(), "created_at": now}
    stored = OIDC_IDENTITIES().find_one_and_update(
        {"_id": _key(subject)},
        {"$setOnInsert": new},
        upsert=True,
        return_document=ReturnDocument.AFTER,
    )
    user_id: ObjectId = (stored or new)["user_id"]
    return user_id


def _create(user_id: ObjectId, identity: Identity, *, now: datetime) -> StaffUser:
    name = _username(identity)
    for number in range(1, MAX_SAME_NAMES + 1):
        free = name if number == 1 else f"{name[: MAX_USERNAME - 3]}-{number}"
        user = StaffUser(pk=user_id, username=free, is_staff=True, date_joined=now)
        user.set_unusable_password()
        try:
            user.save(force_insert=True)
        except IntegrityError:
            # The name is taken, or a concurrent sign-in of the same person was first.
            if (created := StaffUser.objects.filter(pk=user_id).first()) is not None:
                return created
            continue
        return user
    raise RefusedError(Refusal.MALFORMED, "username")


def _username(identity: Identity) -> str:
    claims = identity.claims
    texts = (claims.get(name) for name in ("preferred_username", "email", "name"))
    found = next((text for text in texts if isinstance(text, str) and text.strip()), None)
    cleaned = _NOT_IN_USERNAME.sub("-", found or identity.subject).strip("-")[:MAX_USERNAME]
    return cleaned or "staff"


def _short(value: Any, length: int) -> str:
    return value.strip() if isinstance(value, str) and len(value) <= length else ""


def _key(subject: str) -> str:
    return f"{settings.OIDC_ISSUER} {subject}"
