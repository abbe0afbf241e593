"""Signed-in staff."""

from typing import Any

from django.contrib.auth.models import Permission
from django.test import Client

from access.models import StaffUser
from domain.time import utc_now
from notifyproject.db.collections import collection


def make_staff(username: str, *permissions: str, superuser: bool = False) -> StaffUser:
    """Store a member of staff with permissions as ``app.codename``."""
    user = StaffUser.objects.create_user(username, f"{username}@example.com", "s3cret-enough")
    user.is_staff, user.is_superuser = True, superuser
    user.first_name, user.last_name = username.capitalize(), "Santos"
    user.save()
    for name in permissions:
        app, _, codename = name.partition(".")
        found = Permission.objects.get(content_type__app_label=app, codename=codename)
        user.user_permissions.add(found)
    return user


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
    client = Client(**options)
    client.force_login(user)
    return client


def listed(client: Client, url: str) -> list[Any]:
    return [row.pk for row in client.get(url).context["cl"].result_list]
