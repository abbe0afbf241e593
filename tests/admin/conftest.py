"""Staff of each kind, and the commands that a page sends to MongoDB."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from pymongo import monitoring

from access.models import StaffUser
from domain.time import utc_now
from notifyproject.db.collections import collection, database

READS = frozenset({"find", "aggregate", "count", "distinct"})
NOT_EXPLAINED = frozenset({"lsid", "$db", "$clusterTime", "$readPreference", "maxTimeMS"})


class _Reads(monitoring.CommandListener):
    """Remembers what was read, while somebody listens."""

    def __init__(self) -> None:
        self.commands: list[dict[str, Any]] = []
        self.is_on = False

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        if self.is_on and event.command_name in READS:
            self.commands.append(dict(event.command))

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        pass

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        pass


reads = _Reads()
monitoring.register(reads)


class Plan:
    """How MongoDB carried a read out."""

    def __init__(self, command: dict[str, Any]) -> None:
        self.collection = str(next(iter(command.values())))
        asked = {name: value for name, value in command.items() if name not in NOT_EXPLAINED}
        self.told = database().command("explain", asked, verbosity="executionStats")

    @property
    def stages(self) -> set[str]:
        """The names of the stages of the plan that was carried out."""
        found: set[str] = set()
        for plan in _values(self.told, "winningPlan"):
            found |= set(_values(plan, "stage"))
        return found

    @property
    def documents_examined(self) -> int:
        """How many documents were read."""
        return max(_values(self.told, "totalDocsExamined"), default=0)


def _values(node: Any, name: str) -> list[Any]:
    """Return every value under ``name``, however deep."""
    found = []
    if isinstance(node, dict):
        found += [node[name]] if name in node else []
        found += [v for child in node.values() for v in _values(child, name)]
    elif isinstance(node, list):
        found += [v for child in node for v in _values(child, name)]
    return found


def plans(client: Client, url: str, *, of: str) -> list[Plan]:
    """Return the plans of all that a page reads of one collection."""
    reads.commands.clear()
    reads.is_on = True
    try:
        response = client.get(url)
    finally:
        reads.is_on = False
    assert response.status_code == 200
    return [Plan(c) for c in reads.commands if str(next(iter(c.values()))) == of]


def make_staff(username: str, *permissions: str, superuser: bool = False) -> StaffUser:
    """Store a member of staff with these permissions, ``app.codename``."""
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
    """Store a person; ``fields`` are what is known of her beside her addresses."""
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
    """Return a client on which a member of staff has signed in."""
    client = Client(**options)
    client.force_login(user)
    return client


@pytest.fixture
def admin_user(db: None) -> StaffUser:
    """Give a superuser."""
    return make_staff("maria", superuser=True)


@pytest.fixture
def console(admin_user: StaffUser) -> Client:
    """Give a client on which a superuser has signed in."""
    return signed_in(admin_user)


@pytest.fixture
def support(db: None) -> Client:
    """Give a client of somebody who may look at notifications and people, and do nothing."""
    names = ("notifications.view_notification", "notifications.view_deliveryattempt")
    others = ("notifications.view_webhooklog", "recipients.view_recipient")
    return signed_in(
        make_staff(
            *("rui", *names, *others),
            *("recipients.view_suppression", "admin.view_logentry"),
        )
    )


@pytest.fixture
def operator(db: None) -> Client:
    """Give a client of somebody who may retry in bulk, and do nothing else."""
    return signed_in(
        make_staff(
            *("olga", "notifications.view_notification", "notifications.view_bulkoperation"),
            *("notifications.run_bulkoperation", "notifications.retry_notification"),
        )
    )


@pytest.fixture
def reading() -> Iterator[_Reads]:
    """Give the listener, switched off after the test."""
    yield reads
    reads.is_on = False


def listed(client: Client, url: str) -> list[Any]:
    """Return the ids a list shows, in its order."""
    return [row.pk for row in client.get(url).context["cl"].result_list]
