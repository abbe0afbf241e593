"""Signed-in staff."""

from functools import cache
from typing import Any

from bson import ObjectId
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import Permission
from django.contrib.sessions.backends.db import SessionStore
from django.test import Client
from django.utils.crypto import get_random_string

from access.models import StaffUser
from access.staff import reauthentication
from domain.time import utc_now
from notifyproject.db.collections import collection


def make_staff(username: str, *permissions: str, superuser: bool = False) -> StaffUser:
    """Store a member of staff with permissions as ``app.codename``."""
    user = StaffUser.objects.create_user(
        username,
        f"{username}@example.com",
        "s3cret-enough",
        is_staff=True,
        is_superuser=superuser,
        first_name=username.capitalize(),
        last_name="Santos",
    )
    if permissions:
        user.user_permissions.set(permission_id(name) for name in permissions)
    return user


def permission_id(name: str) -> ObjectId:
    """Return the key of the permission ``app.codename``."""
    return _permission_ids()[name]


@cache
def _permission_ids() -> dict[str, ObjectId]:
    # Only migrations write permissions.
    stored = Permission.objects.values_list("content_type__app_label", "codename", "pk")
    return {f"{app}.{codename}": key for app, codename, key in stored}


def register_ada(**fields: Any) -> None:
    now = utc_now()
    collection("recipients").insert_one(
        {
            "_id": "ada",
            "name": "Ada",
            "email": "ada@example.com",
            "phone": "+351912345678",
            "is_active": True,
            "created_at": now,
            "updated_at": now,
            **fields,
        }
    )


def signed_in(user: StaffUser, **options: Any) -> Client:
    """Return a client with the session of a user who has just signed in, stored by one command."""
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[-1]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session[reauthentication.SESSION_KEY] = utc_now().timestamp()
    session._session_key = get_random_string(32)
    session.save(must_create=True)
    client = Client(**options)
    client.cookies[settings.SESSION_COOKIE_NAME] = session.session_key
    return client


def listed(client: Client, url: str) -> list[Any]:
    return [row.pk for row in client.get(url).context["cl"].result_list]
